"""One stream of SmolLM2: 128 tokens behind a prompt of about as many. The peers of the requirement are not run yet."""

import statistics

from generate import replies
from report import at_least, skipped

TITLE = "One stream: tokens a second in the file's own bits and in bf16"
IS_TIMED = True

# The best of llama.cpp's on the machine where the requirement was set (two Zen 5 cores): Q4_0 and BF16.
FIGURES = {"own": 161, "bf16": 102}

skip_reason = replies.skip_reason


def measure(report, arguments):
    prompt = " ".join(replies.OPENINGS[:11])
    rates = {precision: [] for precision in FIGURES}
    for _ in range(arguments.rounds):
        for precision in rates:  # in turn
            made = replies.generate(prompt, "--max-tokens", 128, "--ignore-eos", "--precision", precision)
            rates[precision].append((made["completion_tokens"] - 1) / made["decode_seconds"])
    report.raw["tokens_per_second"] = rates
    for precision, figure in FIGURES.items():
        rate = statistics.median(rates[precision])
        report.add(at_least(f"{precision}, tokens/s against the figure of another machine, {figure}", rate / figure, 1.0, digits=2,
                            unit="x"))
    report.add(skipped("1.8x and 1.6x of llama.cpp and ONNX Runtime in the same run", "these peers are not installed by ./accept yet"))
