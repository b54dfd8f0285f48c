"""./test --long: what its last run left in build-test/times-long.json."""

import json

from ground.row09_test_time import of_this_state
from programs import ROOT, TESTS
from report import holds

TITLE = "./test --long passes: ThreadSanitizer over the torch-free tests, ten minutes of fuzzing per parser"
IS_TIMED = False

FUZZ_S = 600


def measure(report, arguments):
    path = TESTS / "times-long.json"
    if not path.exists():
        report.add(holds("./test --long has been run", False, f"no {path.relative_to(ROOT)}: run ./test --long"))
        return
    times = json.loads(path.read_text())
    report.raw["times"] = times
    report.add(of_this_state(times))
    names = [step["step"] for step in times["steps"]]
    report.add(holds("all tests were run", times["whole"], "yes" if times["whole"] else "some only"))
    report.add(holds("ThreadSanitizer was among them", any("ThreadSanitizer" in name for name in names),
                     f"{len(names)} steps"))
    report.add(holds("each header was compiled alone", "Every header alone" in names, f"{times['wall_s'] / 60:.0f} minutes in all"))
    report.add(holds("fuzzing of each parser", times["fuzz_s"] >= FUZZ_S, f"{times['fuzz_s']} s, {times['fuzz_jobs']} at once on {times['cores']} cores", f">= {FUZZ_S} s"))
    report.add(holds("the tests", times["passed"], times["closing_line"] or "no closing line", "all pass"))
