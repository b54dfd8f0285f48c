"""A server that stands still for a second: what intended times show and service times hide, and that the output says why."""

from bench import running
from report import holds

TITLE = "a server frozen for 1 s in 60 s at 100/s: intended and service times, with 4 connections and without a limit"
IS_TIMED = True

EXPLANATION = "all connections were busy at times: what requests waited for one is part of their latency, but not of their service time"


def measure(report, arguments):
    running.selftest(report, "freeze")
    with running.null_server("--law", "deterministic", "--mean", "0.001", "--freeze-at", "3", "--freeze", "1") as url:
        _, printed, _ = running.bench("http", f"{url}/", "--rate", 100, "--connections", 4, "--duration", "10s", "--warm-up", "none")
    report.raw["printed"] = printed
    is_told = EXPLANATION in " ".join(printed.split())  # however wide the screen is
    report.add(holds("the difference is explained in one sentence", is_told, "yes" if is_told else printed[:300]))
