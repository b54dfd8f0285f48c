"""Five thousand requests a second from one thread, with the server on the same two cores; and where it cannot be in time."""

from bench import running

TITLE = "5,000 requests a second on two cores: rate and send lag; beside busy threads the run is declared invalid"
IS_TIMED = True


def measure(report, arguments):
    running.selftest(report, "rate")
