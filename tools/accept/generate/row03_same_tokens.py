"""The same prompt and seed give the same tokens: on one core or two, in company, after preemption, after a worker's death."""

import json
import subprocess

from generate import replies
from programs import ROOT, scratch
from report import at_least, holds

TITLE = "The same tokens whatever the cores, company, preemption or worker; greedy and seeded"
IS_TIMED = False

TREE = ROOT / "build-test" / "plain"
SAMPLED = ("--temperature", 0.8, "--top-p", 0.95, "--seed", 7)

skip_reason = replies.skip_reason


def measure(report, arguments):
    subprocess.run(["ninja", "-C", TREE, "worker_test"], check=True, stdout=subprocess.DEVNULL)
    results = scratch("generation.json")
    done = subprocess.run([TREE / "bin" / "worker_test", "--gtest_filter=GenerationTest.*", f"--gtest_output=json:{results}"],
                          capture_output=True, text=True)
    report.raw["worker_test"] = json.loads(results.read_text())
    report.add(holds("in company, after preemption, on another worker (a tiny model)", done.returncode == 0,
                     "passed" if done.returncode == 0 else done.stdout[-300:], "passed"))
    for name, options in (("greedy", ()), ("seeded", SAMPLED)):
        for precision in ("own", "bf16"):
            same = 0
            for prompt in replies.OPENINGS:
                texts = [replies.generate(prompt, "--max-tokens", 48, "--precision", precision, *options, cores=cores)["text"]
                         for cores in (1, 2)]
                same += texts[0] == texts[1]
            report.add(at_least(f"SmolLM2 {precision}, {name}: of {len(replies.OPENINGS)} prompts the same on 1 and 2 cores", same,
                                len(replies.OPENINGS), digits=0))
