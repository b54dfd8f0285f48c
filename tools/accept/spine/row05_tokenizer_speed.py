"""The tokenizer alone on one core."""

import json
import os
import subprocess

from programs import BUILD, CORPUS, MODEL
from report import at_least, at_most

TITLE = "The tokenizer alone on one core"
IS_TIMED = True

MB_PER_S_MIN = 40.0
LONG_TEXT_COST_MAX = 2.0  # of 1 MB cut to 256 tokens, in times of 4 kB
LENGTH_MAX = 256


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "tokenizer_bench"], check=True, stdout=subprocess.DEVNULL)
    core = min(os.sched_getaffinity(0))
    done = subprocess.run([BUILD / "bin/tokenizer_bench", MODEL / "tokenizer.json", CORPUS, "--length-max",
                           str(LENGTH_MAX)], capture_output=True, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    result = json.loads(done.stdout.splitlines()[-1])
    report.raw.update(result)
    speed = result["mb_per_cpu_s" if arguments.anyway else "mb_per_s"]
    report.add(at_least("the corpus, whole", speed, MB_PER_S_MIN, digits=1, unit=" MB/s"))
    report.add(at_most("a text of 1 MB cut to 256 tokens against one of 4 kB", result["cut_ratio"],
                       LONG_TEXT_COST_MAX, unit="x"))
