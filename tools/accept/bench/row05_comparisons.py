"""Equal servers and servers 3 % apart, on a stepped clock through the comparison of results; then five real pairs of equal runs."""

import json

from bench import running
from programs import scratch
from report import at_least, holds

TITLE = "A/A 100 times and a planted 3 %: verdicts at 99 %; five real pairs"
IS_TIMED = True

PAIRS, TRIALS, SECONDS = 5, 5, "2s"


def real_side(url, name):
    out = scratch(name)
    out.unlink(missing_ok=True)
    code, _, said = running.bench("http", f"{url}/", "--clients", 1, "--duration", SECONDS, "--trials", TRIALS, "--cooldown", "100ms", "-o", out)
    if code not in (0, running.LATE):
        raise RuntimeError(f"muster bench ended with {code}: {said[-400:]}")
    return out


def measure(report, arguments):
    running.selftest(report, "compare")
    calm = 0
    report.raw["real pairs"] = []
    for pair in range(PAIRS):
        with running.null_server("--law", "exponential", "--mean", "0.001", "--seed", 2 * pair + 1) as url:
            sides = [real_side(url, f"bench-{side}.json") for side in "ab"]
        code, printed, said = running.bench("diff", *sides, "--json")
        if code not in (0, running.LATE, 23):  # late in all trials: a pair without a verdict, which is not calm
            raise RuntimeError(f"muster bench diff ended with {code}: {said[-300:]}")
        difference = json.loads(printed)
        report.raw["real pairs"].append(difference)
        calm += all(one["verdict"] == "no difference" for one in difference["figures"])
    report.add(at_least("real pairs of equal servers without a difference", calm, PAIRS - 1, 0, f" of {PAIRS}"))
    with running.null_server("--law", "exponential", "--mean", "0.001", "--seed", 91) as url:
        before = real_side(url, "bench-a.json")
    with running.null_server("--law", "exponential", "--mean", "0.0013", "--seed", 92) as url:
        after = real_side(url, "bench-b.json")
    code, printed, _ = running.bench("diff", before, after)
    report.raw["planted, real"] = printed
    report.add(holds("a real server with 30 % longer service: exit code for CI", code == 23, str(code), "23"))
