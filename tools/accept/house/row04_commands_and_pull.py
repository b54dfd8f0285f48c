"""Every command that muster prints is run on what ./quickstart leaves, with the real engine; then `muster pull` through cuts."""

import sys

from house import row04_pull
from programs import BUILD, MODEL, ROOT
from report import holds

sys.path.append(str(ROOT / "tests/commands"))

TITLE = "every printed command runs on the state that ./quickstart leaves; " + row04_pull.TITLE
IS_TIMED = False


def check_commands(report):
    import run
    totals, failures, left_out = run.check(BUILD, is_real=True, says=lambda line: print(f"    {line}"))
    report.raw["commands"] = {"counts": totals, "failures": failures, "left_out": left_out}
    report.add(holds("printed commands that fail", not failures, "; ".join(failures)[:300] or f"none of {totals['run']} run, {totals['parsed']} parsed",
                     "none"))
    report.add(holds("commands that are not run, each with its reason", len(left_out) <= 3, "; ".join(left_out) or "none", "3 at most"))


def measure(report, arguments):
    report.add(holds("the model of ./quickstart", MODEL.exists(), str(MODEL.exists())))
    if MODEL.exists():
        check_commands(report)
    row04_pull.measure(report, arguments)
