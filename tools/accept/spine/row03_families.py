"""Each encoder family against tiny random models written by transformers 5.17."""

import json
import os
import subprocess

from programs import KIND, MODEL, ROOT, scratch
from report import at_most, holds

TITLE = "Each encoder family against transformers 5.17: last hidden state of tiny random models"
IS_TIMED = False

FAMILIES = ("bert", "roberta", "xlm_roberta", "distilbert", "mpnet")
TREE = ROOT / "build-test" / "plain"


def measure(report, arguments):
    subprocess.run(["ninja", "-C", TREE, "engine_test"], check=True, stdout=subprocess.DEVNULL)
    results = scratch("engine_test.json")
    words = [] if KIND == "cpu" else ["--gtest_filter=GpuTest.*:GpuProductTest.*"]
    done = subprocess.run([TREE / "bin" / "engine_test", f"--gtest_output=json:{results}", *words], capture_output=True,
                          text=True, env=dict(os.environ, MUSTER_MINILM=str(MODEL), GPU_TEST_DEVICE=KIND))
    report.raw["engine_test"] = json.loads(results.read_text())
    tests = [test for suite in report.raw["engine_test"]["testsuites"] for test in suite["testsuite"]]
    differences = {test["name"].split("/")[-1]: float(test["max_difference"]) for test in tests if "max_difference" in test}
    # The tests of a GPU go through all families in one.
    differences |= {name: float(value) for test in tests for name, value in test.items() if name in FAMILIES}
    for family in FAMILIES:
        found = {name: value for name, value in differences.items() if name.lower().startswith(family)}
        report.add(at_most(f"{family} ({', '.join(found) or 'no test'}), largest difference (x 1e-6)",
                           max(found.values(), default=float("inf")) * 1e6, 10))
    failed = [test["name"] for test in tests if test.get("failures")]
    skipped = [test["name"] for test in tests if test["result"] == "SKIPPED"]
    report.add(holds("all tests of the engine", done.returncode == 0, f"{len(tests)} run, {len(failed)} failed "
                     f"{' '.join(failed)}, {len(skipped)} skipped {' '.join(skipped)}", "passed"))
