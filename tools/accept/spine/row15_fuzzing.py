"""The parsers of outside bytes under libFuzzer with ASan and UBSan."""

import os
import re
import subprocess

from programs import ROOT
from report import holds

TITLE = "The parsers under libFuzzer with ASan and UBSan: no finding (./accept --long: ten minutes each)"
IS_TIMED = False

PARSERS = ("safetensors", "config", "tokenizer", "frame", "jsonl", "csv")
SECONDS, SECONDS_LONG = 10, 600


def measure(report, arguments):
    tree = ROOT / "build-test" / "sanitized"
    if not (tree / "build.ninja").exists():
        report.add(holds("the fuzz programs are built", False, "run ./test first"))
        return
    subprocess.run(["ninja", "-C", tree, "fuzzers"], check=True, stdout=subprocess.DEVNULL)
    seconds = SECONDS_LONG if arguments.long else SECONDS
    done = subprocess.run(["ctest", "--test-dir", tree, "-R", "^fuzz[.]", "-j", str(os.cpu_count()), "--verbose"],
                          capture_output=True, text=True,
                          env=dict(os.environ, FUZZ_SECONDS=str(seconds), FUZZ_SEED=str(arguments.seed)))
    report.raw.update(output=done.stdout[-200000:], seconds_each=seconds, seed=arguments.seed)
    outcome = dict(re.findall(r"Test +#\d+: fuzz\.(\w+) \.+ *(?:\*\*\*)?(\w+)", done.stdout))
    runs = re.findall(r"stat::number_of_executed_units: (\d+)", done.stdout)
    for parser in PARSERS:
        programs = [name for name in outcome if parser in name]
        report.add(holds(f"{parser}: {', '.join(programs) or 'no program'}",
                         bool(programs) and all(outcome[name] == "Passed" for name in programs),
                         ", ".join(outcome[name] for name in programs), f"{seconds} s, no finding"))
    report.add(holds("all programs", done.returncode == 0 and bool(outcome), f"{len(outcome)} programs, "
                     f"{sum(map(int, runs)):,} inputs", "no finding"))
