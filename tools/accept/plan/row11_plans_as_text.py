"""Plans that a person has read: machines, models, and what muster says to them."""

import subprocess
import sys

from programs import MUSTER, ROOT
from report import at_least, holds

TITLE = "Plans as text in tests/plans: machines x models with the plan or the error expected"
IS_TIMED = False
CASE_COUNT_MIN = 40


def measure(report, _arguments):
    cases = sorted((ROOT / "tests" / "plans" / "cases").glob("*.txt"))
    report.add(at_least("cases", len(cases), CASE_COUNT_MIN))
    done = subprocess.run([sys.executable, "-B", ROOT / "tests" / "plans" / "run.py", MUSTER],
                          capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    report.raw["output"] = lines
    report.add(holds("all as written", done.returncode == 0, lines[-1] if lines else done.stderr.strip()))
