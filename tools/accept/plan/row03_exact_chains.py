"""The four chain planners against everything there is, and larger chains against bounds."""

import json
import pathlib
import subprocess
import tempfile

from programs import BUILD, TESTS
from report import at_least, at_most, holds

TITLE = "The exact chain planners: brute force on small instances, bounds on larger ones"
IS_TIMED = False

INSTANCES, INSTANCES_LONG = 20_000, 500_000
INSTANCES_MIN = 10_000
GAP_MAX = 1.001


def large_chains():
    """The tests on larger chains: {name: passed}, and the figures that they note down."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = pathlib.Path(folder) / "outcome.json"
        subprocess.run([TESTS / "sanitized" / "bin" / "planner_test", "--gtest_filter=LargeChain.*", f"--gtest_output=json:{outcome}"],
                       stdout=subprocess.DEVNULL)
        tests = [test for suite in json.loads(outcome.read_text())["testsuites"] for test in suite["testsuite"]]
    figures = {key: float(value) for test in tests for key, value in test.items() if key.startswith("gap_")}
    return {test["name"]: "failures" not in test for test in tests}, figures


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "planner_bench"], check=True, stdout=subprocess.DEVNULL)
    count = INSTANCES_LONG if arguments.long else INSTANCES
    done = subprocess.run([BUILD / "bin/planner_bench", "exact", str(count), str(arguments.seed)], capture_output=True, text=True)
    result = json.loads(done.stdout)
    report.raw["small"] = result
    for name in ("P1", "P2", "P3", "P4"):
        one = result[name]
        report.add(at_least(f"{name}: instances compared, {one['none_fits']:,} of which fit nowhere", result["instances"],
                            INSTANCES_MIN, digits=0))
        report.add(holds(f"{name}: answers that differ from brute force", one["wrong"] == 0,
                         f"{one['wrong']} (the worst by {one['worst_difference']:.1e})", "0"))
    passed, figures = large_chains()
    report.raw["large"] = {"tests": passed, "figures": figures}
    report.add(holds("larger chains against another exact method and certificates", bool(passed) and all(passed.values()),
                     f"{sum(passed.values())} of {len(passed)} tests"))
    for name in ("gap_P1", "gap_P2"):
        report.add(at_most(f"{name[-2:]}: slowest stage of larger chains, in times of the bound worked out beside it",
                           figures.get(name, float("inf")), GAP_MAX, digits=6, unit="x"))
    for name in ("gap_P2_beyond", "gap_P4_beyond"):
        print(f"  note  {name[4:6]} beyond the table (27 million combinations and more): at most "
              f"{figures.get(name, float('nan')):.3f}x the bound, and it says so")
