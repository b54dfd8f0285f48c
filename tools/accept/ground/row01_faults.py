"""Every fault that was found once has a test, and the tests pass: faults.txt names them."""

import pathlib
import re
import subprocess

from programs import TESTS
from report import holds

TITLE = "Each fault that was found once has its test, and it passes"
IS_TIMED = False

FAULTS = pathlib.Path(__file__).with_name("faults.txt")
TREES = ("sanitized", "plain")
TEST_S = 300


def faults():
    """[(line number, what went wrong, test program, filter)]; a line of another form is an error of faults.txt."""
    rows = []
    for number, line in enumerate(FAULTS.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"faults.txt:{number}: wants `what went wrong | test program | filter`: {line}")
        rows.append((number, *parts))
    return rows


def tests_of(program, pattern):
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={pattern}"], capture_output=True, text=True,
                            timeout=TEST_S, cwd=program.parent)
    return [line.strip() for line in listed.stdout.splitlines() if line.startswith("  ")]


def run_gtest(program, pattern):
    """(how many tests ran and passed, what is wrong or None)."""
    found = [TESTS / tree / "bin" / program for tree in TREES if (TESTS / tree / "bin" / program).exists()]
    if not found:
        return 0, f"{program} is not built; run ./test first"
    for part in pattern.split(":"):  # one that is renamed would be missed beside others
        if not tests_of(found[0], part):
            return 0, f"{part} matches no test"
    done = subprocess.run([found[0], f"--gtest_filter={pattern}"], capture_output=True, text=True, timeout=TEST_S,
                          cwd=found[0].parent)
    passed = re.search(r"\[  PASSED  \] (\d+) test", done.stdout)
    skipped = re.search(r"\[  SKIPPED \] (\d+) test", done.stdout)
    ran = int(passed.group(1)) if passed else 0
    if done.returncode != 0:
        wrong = re.findall(r"^.*(?:Failure|ERROR: \w+Sanitizer).*$", done.stdout + done.stderr, re.M)
        return ran, (wrong or [f"exit code {done.returncode}"])[0]
    if skipped:
        return ran, f"{skipped.group(1)} skipped"
    return ran, None if ran else "no test passed"


def run_ctest(pattern):
    for tree in TREES:
        done = subprocess.run(["ctest", "--test-dir", TESTS / tree, "-R", pattern], capture_output=True, text=True)
        total = re.search(r"tests passed, (\d+) tests failed out of (\d+)", done.stdout)
        if total and int(total.group(2)):
            return int(total.group(2)), None if done.returncode == 0 else f"{total.group(1)} failed"
    return 0, "the pattern matches no test"


def measure(report, arguments):
    rows = faults()
    report.add(holds("faults.txt lists faults", bool(rows), str(len(rows)), "one or more"))
    for number, what, program, pattern in rows:
        try:
            ran, wrong = run_ctest(pattern) if program == "ctest" else run_gtest(program, pattern)
        except subprocess.TimeoutExpired:
            ran, wrong = 0, f"no end within {TEST_S} s"
        report.raw.setdefault("faults", []).append({"line": number, "what": what, "program": program,
                                                    "filter": pattern, "passed": ran, "wrong": wrong})
        report.add(holds(what, wrong is None, wrong or f"{ran} passed ({program})", "one test or more, all passed"))
