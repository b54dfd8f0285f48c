"""Five thousand requests a second from one thread, with the server on the same two cores; and where it cannot be in time."""

import contextlib
import os
import subprocess
import sys

from bench import running
from report import holds

TITLE = "5,000 requests a second on two cores: rate and send lag; beside busy threads and processes the run is declared invalid"
IS_TIMED = True

RATE, SECONDS = 5000, "10s"
VERDICT = "INVALID: the load generator was late: 99th percentile of the send lag"


@contextlib.contextmanager
def busy_cores():
    """On each core a process that computes and never rests."""
    processes = [subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
                 for core in sorted(os.sched_getaffinity(0))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(report, arguments):
    running.selftest(report, "rate")
    with running.null_server() as url, busy_cores():
        code, printed, said = running.bench("http", f"{url}/", "--rate", RATE, "--duration", SECONDS, "--warm-up", "none")
    report.raw["beside busy processes"] = printed or said
    first = " ".join(printed.splitlines()[:2]) or said[-300:]
    report.add(holds("beside a busy process on each core the program says that the run is invalid, and names the lag",
                     code == running.LATE and first.startswith(VERDICT), f"exit code {code}, {first[:120]}", f"exit code {running.LATE}, {VERDICT}"))
