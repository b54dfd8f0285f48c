"""The same question a hundred times, its keys in another order and under another locale each time."""

import subprocess
import sys

from programs import MUSTER, ROOT
from report import holds

TITLE = "The same inputs 100 times, keys shuffled, another locale: the same bytes"
IS_TIMED = False
RUN_COUNT = 100


def measure(report, _arguments):
    done = subprocess.run([sys.executable, "-B", ROOT / "tests" / "plans" / "run.py", MUSTER, "--same", str(RUN_COUNT)],
                          capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    report.raw["output"] = lines
    report.add(holds("every plan, 100 runs", done.returncode == 0, lines[-1] if lines else done.stderr.strip()))
