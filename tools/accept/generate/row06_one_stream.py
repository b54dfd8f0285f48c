"""One stream of SmolLM2: 128 tokens behind a prompt of about as many. The peers of the requirement are not run yet."""

import statistics

from generate import replies
from report import at_least, skipped

TITLE = "One stream: tokens a second in the file's own bits and in bf16"
IS_TIMED = True

PRECISIONS = ("own", "bf16")

skip_reason = replies.skip_reason


def measure(report, arguments):
    prompt = " ".join(replies.OPENINGS[:11])
    rates = {precision: [] for precision in PRECISIONS}
    for _ in range(arguments.rounds):
        for precision in rates:  # in turn
            made = replies.generate(prompt, "--max-tokens", 128, "--ignore-eos", "--precision", precision)
            rates[precision].append((made["completion_tokens"] - 1) / made["decode_seconds"])
    report.raw["tokens_per_second"] = rates
    medians = {precision: statistics.median(each) for precision, each in rates.items()}
    for precision, rate in medians.items():
        report.add(skipped(f"{precision}, tokens/s", f"{rate:.1f}; only a peer on the same machine would say whether that is much"))
    # A token reads all weights, and the file's own bits are a third of bf16's.
    report.add(at_least("own against bf16 in the same run", medians["own"] / medians["bf16"], 1.0, digits=2, unit="x"))
    report.add(skipped("1.8x and 1.6x of llama.cpp and ONNX Runtime in the same run", "these peers are not installed by ./accept yet"))
