"""Ramps of ten seconds at the beginning of a minute: cut whole, and little more."""

from bench import running
from report import holds

TITLE = "planted 10 s ramp: cut in >= 95 %, <= 5 % of steady data lost; a real server that warms up"
IS_TIMED = True

RAMP_S = 10


def measure(report, arguments):
    running.selftest(report, "warm-up")
    with running.null_server("--law", "deterministic", "--mean", "0.002", "--warm-up", RAMP_S, "--warm-up-factor", 3) as url:
        result, _ = running.measure("http", f"{url}/", "--clients", 1, "--duration", "60s")
    trial = result["points"][0]["trials"][0]
    report.raw["real"] = {key: trial[key] for key in ("warm_up_seconds", "steady", "drift", "latency")}
    cut = trial["warm_up_seconds"]
    report.add(holds("a real run against a server with such a ramp: the cut", 0.95 * RAMP_S <= cut <= 1.3 * RAMP_S and trial["steady"],
                     f"{cut:.2f} s, {'steady' if trial['steady'] else 'not steady'} from there", "9.5 s to 13 s, steady"))
