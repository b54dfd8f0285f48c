"""What rows on the stand-in share: the tree of ./test, where the stand-in lies beside the worker, and its tests."""

import json
import os
import subprocess

from programs import TESTS, scratch
from report import holds

TREE = TESTS / "plain"
BIN = TREE / "bin"
LIBRARY = BIN / "libmuster-standin.so"
TESTS_S = 600  # of a program of tests: they take a minute


def skip_reason():
    return None if LIBRARY.exists() else "there is no stand-in device (./test builds it)"


def run_tests(report, program, names, environment=None, folder=BIN):
    """A check for each of the tests: {name: what it shows}; the results by name."""
    results = scratch(f"{program}.json")
    results.unlink(missing_ok=True)  # of an earlier run
    done = subprocess.run([folder / program, f"--gtest_filter={':'.join(names)}", f"--gtest_output=json:{results}"],
                          capture_output=True, text=True, timeout=TESTS_S, env={**os.environ, **(environment or {})})
    report.raw[program] = json.loads(results.read_text()) if results.exists() else done.stdout[-4000:]
    suites = report.raw[program].get("testsuites", []) if results.exists() else []
    found = {f"{suite['name']}.{test['name']}": test for suite in suites for test in suite["testsuite"]}
    for name, words in names.items():
        test = found.get(name)
        is_well = test is not None and test["result"] == "COMPLETED" and not test.get("failures")
        report.add(holds(words, is_well, f"{name} {'passed' if is_well else 'did not pass'}", "passed"))
    return found


def run_pattern(program, pattern, environment):
    """The names of the tests of a pattern that passed, and of those that did not."""
    results = scratch(f"{program}.json")
    results.unlink(missing_ok=True)
    subprocess.run([BIN / program, f"--gtest_filter={pattern}", f"--gtest_output=json:{results}"], capture_output=True, timeout=TESTS_S,
                   env={**os.environ, **environment})
    suites = json.loads(results.read_text()).get("testsuites", []) if results.exists() else []
    tests = [test for suite in suites for test in suite["testsuite"]]
    passed = [test["name"] for test in tests if test["result"] == "COMPLETED" and not test.get("failures")]
    return passed, [test["name"] for test in tests if test["name"] not in passed]
