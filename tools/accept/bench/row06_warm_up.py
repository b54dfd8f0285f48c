"""Ramps of ten seconds at the beginning of a minute: cut whole, and little more."""

from bench import running
from report import holds

TITLE = "planted 10 s ramp: cut in >= 95 %, <= 5 % of steady data lost; a real server that warms up"
IS_TIMED = True

RAMP_S = 10
RUNS = 3  # real ones: what disturbs the machine in the first seconds is cut, too, as it should be


def measure(report, arguments):
    running.selftest(report, "warm-up")
    trials = []
    for _ in range(RUNS):
        with running.null_server("--law", "deterministic", "--mean", "0.002", "--warm-up", RAMP_S, "--warm-up-factor", 3) as url:
            result, _ = running.measure("http", f"{url}/", "--clients", 1, "--duration", "60s")
        trials.append(result["points"][0]["trials"][0])
    report.raw["real"] = [{key: trial[key] for key in ("warm_up_seconds", "steady", "drift", "latency")} for trial in trials]
    cuts = sorted(trial["warm_up_seconds"] for trial in trials)
    text = ", ".join(f"{cut:.2f} s" for cut in cuts)
    report.add(holds("real runs against a server with such a ramp: the cuts", cuts[0] >= 0.95 * RAMP_S and cuts[RUNS // 2] <= 1.3 * RAMP_S,
                     text, "9.5 s or more, the median 13 s or less"))
    report.add(holds("what is kept of them", all(trial["steady"] for trial in trials),
                     f"steady in {sum(trial['steady'] for trial in trials)} of {RUNS}", f"steady in {RUNS} of {RUNS}"))
