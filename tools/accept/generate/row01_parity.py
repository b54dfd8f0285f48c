"""Logits and greedy tokens against transformers: tiny models of every family, and SmolLM2 dequantised."""

import json
import subprocess

from generate import replies
from programs import PEER_PYTHON, PEERS, ROOT, scratch
from report import at_least, holds, skipped

TITLE = "Decoders against transformers 5.17: tiny random models of each family, SmolLM2 dequantised"
IS_TIMED = False

TREE = ROOT / "build-test" / "plain"
PROMPTS = 5
TOKENS = 64

skip_reason = replies.skip_reason


def measure(report, arguments):
    subprocess.run(["ninja", "-C", TREE, "engine_test"], check=True, stdout=subprocess.DEVNULL)
    results = scratch("decoders.json")
    done = subprocess.run([TREE / "bin" / "engine_test", "--gtest_filter=*DecoderModelTest*", f"--gtest_output=json:{results}"],
                          capture_output=True, text=True)
    tests = [test for suite in json.loads(results.read_text())["testsuites"] for test in suite["testsuite"]]
    report.raw["engine_test"] = [test["name"] for test in tests]
    failed = [test["name"] for test in tests if test.get("failures")]
    report.add(holds("tiny models: logits within 1e-4, 64 greedy tokens, the same bits in company", done.returncode == 0,
                     f"{len(tests)} tests, failed: {' '.join(failed) or 'none'}", "all pass"))

    prompts = scratch("prompts.json")
    prompts.write_text(json.dumps(replies.OPENINGS[:PROMPTS]))
    theirs_file = scratch("theirs.json")
    subprocess.run([PEER_PYTHON, PEERS / "gguf_generate.py", replies.DECODER, prompts, theirs_file, str(TOKENS)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    theirs = json.loads(theirs_file.read_text())
    report.raw["transformers"] = theirs
    for precision in ("fp32", "bf16", "own", "int8"):
        ours = [replies.generate(prompt, "--max-tokens", TOKENS, "--ignore-eos", "--precision", precision)["text"]
                for prompt in replies.OPENINGS[:PROMPTS]]
        report.raw[precision] = ours
        same = sum(a == b for a, b in zip(ours, theirs))
        what = f"SmolLM2 {precision}, prompts of {PROMPTS} whose {TOKENS} tokens are transformers' fp32's"
        if precision == "fp32":
            report.add(at_least(what, same, PROMPTS, digits=0))
        else:
            report.add(skipped(what, f"{same}; nothing is required, as rounding may choose another token"))
