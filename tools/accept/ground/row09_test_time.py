"""How long ./test takes: what its last run left in build-test/times.json, or with --long two runs of an empty clone."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from programs import DEPS, ROOT, TESTS
from report import at_most, holds, skipped

TITLE = "./test: half an hour for an empty clone, eight minutes when nothing changed"
IS_TIMED = True

COLD_S, WARM_S = 1800, 480
CORES = 2


def of_this_state(times):
    """A check that no program or test was changed since: results, these rows and texts for people cost ./test no time."""
    done = subprocess.run(["git", "-C", ROOT, "diff", "--name-only", times["commit"] or "HEAD", "--", ".", ":!benchmarks/results", ":!accept", ":!tools/accept", ":!*.md"],
                          capture_output=True, text=True)
    changed = done.stdout.split() if done.returncode == 0 else [done.stderr.strip()]
    return holds("./test was run on this state", not changed, f"{times['commit']}; changed since: {', '.join(changed[:3]) or 'nothing'}")


def add_times(report, what, times, limit):
    report.raw[what] = times
    for step in times["steps"]:
        print(f"        {step['wall_s']:5.0f} s, {step['cpu_s']:6.0f} s of CPU  {step['step']}")
    report.add(holds(f"{what}: the tests", times["passed"], times["closing_line"] or "no closing line", "all pass"))
    if times.get("run_twice"):
        print(f"        passed only when run once more, alone: {times['run_twice']}")
    cpu = sum(step["cpu_s"] for step in times["steps"])
    report.add(at_most(f"{what}: wall time on {times['cores']} cores ({cpu / 60:.0f} CPU minutes, "
                       f"{times['compiled']} files compiled)", times["wall_s"], limit, 0, " s"))


def from_last_run(report):
    """The last run was of one kind or the other; it is judged as what it was."""
    path = TESTS / "times.json"
    if not path.exists():
        report.add(holds("./test has been run", False, f"no {path.relative_to(ROOT)}"))
        return
    times = json.loads(path.read_text())
    report.add(of_this_state(times))
    report.add(holds("the last run of ./test was a whole one", times["whole"] and not times["long"],
                     "some tests only" if not times["whole"] else "--long" if times["long"] else "whole"))
    if times["whole"] and not times["long"]:
        cold = times["from_nothing"]
        add_times(report, "from an empty clone" if cold else "with what was built", times, COLD_S if cold else WARM_S)


def run_test(clone, cache):
    environment = dict(os.environ, CCACHE_DIR=str(cache))
    subprocess.run(["./test", "--jobs", str(CORES)], cwd=clone, env=environment, stdout=subprocess.DEVNULL)
    return json.loads((clone / "build-test" / "times.json").read_text())


def from_an_empty_clone(report):
    """An empty clone and an empty cache; the downloads alone are there already."""
    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder) / "clone"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        (clone / ".deps").symlink_to(DEPS)
        cache = pathlib.Path(folder) / "ccache"
        add_times(report, "from an empty clone", run_test(clone, cache), COLD_S)
        add_times(report, "again, nothing changed", run_test(clone, cache), WARM_S)
        shutil.rmtree(clone / "build-test")
        shutil.rmtree(cache)
        add_times(report, "from nothing once more", run_test(clone, cache), COLD_S)


def measure(report, arguments):
    if len(os.sched_getaffinity(0)) < CORES:
        report.add(skipped("times", f"they are for {CORES} cores"))
        return
    if arguments.long:
        from_an_empty_clone(report)
    else:
        from_last_run(report)
