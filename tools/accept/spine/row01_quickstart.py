"""A fresh clone and ./quickstart, then ./quickstart again."""

import os
import re
import signal
import subprocess
import tempfile
import time

from programs import ROOT
from report import at_most, holds

TITLE = "A fresh clone, ./quickstart, then again"
IS_TIMED = True

MINUTES_MAX = 6.0        # to the first vector, on two cores, without the downloads
SECOND_RUN_S_MAX = 5.0   # to the job
DOWNLOADS = ("Debian packages", "The torch wheel", "The model", "The decoder")
STEP = re.compile(r"^\[ *\d+ s\] (.*)")
PROGRESS = re.compile(r"muster: +\d+ %, [1-9][\d,]* texts")
FIRST_VECTOR = re.compile(r"first vector after ([\d.]+) s")


def run_quickstart(clone, until_job=False, verbose=True):
    """The steps as [(name, seconds since the start)], seconds to the first vector, the exit code, the output. The long report tells
    of the first vector; without it the first line of progress does, which comes five seconds after the job's start."""
    # No compiler cache: the clone is to build as it would for a stranger.
    process = subprocess.Popen(["./quickstart", *(["--verbose"] if verbose else [])], cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True, env=dict(os.environ, CCACHE_DISABLE="1"))
    start, steps, lines, first_vector_s = time.monotonic(), [], [], None
    for line in process.stdout:
        now = time.monotonic() - start
        lines.append(f"{now:8.1f} {line.rstrip()}")
        step = STEP.match(line)
        if step:
            steps.append((step.group(1), now))
            if until_job and step.group(1).startswith("The job"):
                os.killpg(process.pid, signal.SIGINT)
        first = FIRST_VECTOR.search(line)
        if first and first_vector_s is None:
            first_vector_s = steps[-1][1] + float(first.group(1))
        if not verbose and first_vector_s is None and PROGRESS.match(line):
            first_vector_s = now
    return steps, first_vector_s, process.wait(), lines


def durations(steps):
    return {name: after - before for (name, before), (_, after) in zip(steps, steps[1:])}


def measure(report, arguments):
    with tempfile.TemporaryDirectory(prefix="muster-clone-") as folder:
        clone = folder + "/muster"
        subprocess.run(["git", "clone", "-q", "--local", "--no-hardlinks", str(ROOT), clone], check=True)
        steps, first_vector_s, code, lines = run_quickstart(clone)
        report.raw["first_run"] = {"steps": steps, "exit": code, "output": lines}
        report.add(holds("the first run ends well", code == 0, f"exit code {code}", "exit code 0"))
        if code != 0:
            return
        waited = sum(s for name, s in durations(steps).items() if name.startswith(DOWNLOADS))
        report.raw["downloads_s"], report.raw["first_vector_s"] = waited, first_vector_s
        report.add(holds("its report tells when the first vector was there", first_vector_s is not None, str(first_vector_s)))
        if first_vector_s is not None:
            report.add(at_most("to the first vector, without the downloads",
                               (first_vector_s - waited) / 60, MINUTES_MAX, unit=" min"))
        again, _, _, lines = run_quickstart(clone, until_job=True)
        report.raw["second_run"] = {"steps": again, "output": lines}
        job = [s for name, s in again if name.startswith("The job")]
        report.add(at_most("the second run, seconds to the job", job[0] if job else float("inf"), SECOND_RUN_S_MAX,
                           unit=" s"))
