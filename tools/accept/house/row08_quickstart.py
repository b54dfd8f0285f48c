"""./quickstart on an empty clone as a program that reads its output would see it, and again."""

import json
import pathlib
import re
import subprocess
import tempfile

from ground.row09_test_time import from_last_run
from programs import ROOT
from report import at_most, holds
from spine.row01_quickstart import DOWNLOADS, durations, run_quickstart

TITLE = "./quickstart on an empty clone: lines of output, nothing embedded twice, the time to the first vector as README says; ./test in half an hour"
IS_TIMED = True

LINES_MAX = 60
ROUNDING_MIN = 0.5  # README states whole minutes; the limit for them is spine.1's
NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
CLAIM = re.compile(r"the first vector is written (\w+) minutes after the start.*?\]\((benchmarks/results/[^)]+)\)", re.DOTALL)


def stated_minutes(report, minutes):
    """What README says, what the file that it links to has measured, and what was measured now."""
    claim = CLAIM.search((ROOT / "README.md").read_text())
    report.add(holds("README states the time, with a link to the result", claim is not None, claim[2] if claim else "no"))
    if not claim:
        return
    raw = json.loads((ROOT / claim[2]).read_text())["raw"]
    measured = (raw["first_vector_s"] - raw["downloads_s"]) / 60
    report.add(holds("README's minutes are those of that result", round(measured) == NUMBERS.get(claim[1]), f"{claim[1]}; {measured:.2f}"))
    if minutes is not None:
        report.add(at_most("to the first vector, without the downloads, beside what README says", minutes,
                           NUMBERS.get(claim[1], 0) + ROUNDING_MIN, 2, unit=" min"))


def measure(report, arguments):
    with tempfile.TemporaryDirectory(prefix="muster-clone-") as folder:
        clone = pathlib.Path(folder) / "muster"
        subprocess.run(["git", "clone", "-q", "--local", "--no-hardlinks", ROOT, clone], check=True)
        steps, first_vector_s, code, lines = run_quickstart(str(clone), verbose=False)
        waited = sum(s for name, s in durations(steps).items() if name.startswith(DOWNLOADS))
        report.raw["first_run"] = {"steps": steps, "exit": code, "output": lines}
        report.raw["downloads_s"], report.raw["first_vector_s"] = waited, first_vector_s
        report.add(holds("the first run ends well", code == 0, f"exit code {code}", "exit code 0"))
        if code != 0:
            return
        report.add(at_most("lines of output", len(lines), LINES_MAX, digits=0))
        report.add(holds("its progress tells when vectors were there", first_vector_s is not None, str(first_vector_s)))
        again, _, code, lines = run_quickstart(str(clone), verbose=False)
        report.raw["second_run"] = {"steps": again, "exit": code, "output": lines}
        text = "\n".join(lines)
        report.add(holds("the second run embeds nothing", code == 0 and "is complete already" in text and "texts/s" not in text,
                         f"exit code {code}", "exit code 0, and says that it is complete"))
        report.add(at_most("lines of the second run", len(lines), LINES_MAX, digits=0))
    from_last_run(report)
    stated_minutes(report, None if first_vector_s is None else (first_vector_s - waited) / 60)
