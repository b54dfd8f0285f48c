"""A prompt of 512 tokens: how fast it is read, ours and the peers in turn."""

import contextlib

from generate import contenders, speeds

TITLE = "Prefill of 512 tokens on two cores: OpenVINO bf16, vLLM bf16, llama.cpp BF16 and ours in the same run"
IS_TIMED = True

TOKENS, REPEATS = 512, 3
EXACT, INT8 = "ours, bf16", "ours, int8"
OWN = {EXACT: "bf16", INT8: "int8", "ours, the file's own bits": "own"}
PEERS = {"OpenVINO bf16": lambda: contenders.openvino("bf16"), "vLLM bf16": contenders.vllm,
         "llama.cpp BF16": lambda: contenders.llama_server("BF16")}
EXACT_RATIO, INT8_RATIO = 1.1, 1.7

skip_reason = contenders.skip_reason


def measure(report, arguments):
    prompts = speeds.id_prompts(TOKENS, arguments.rounds * (REPEATS + 1))
    with contextlib.ExitStack() as stack:
        turns = contenders.all_up(stack, report, contenders.prepared(report, contenders.makers(OWN, PEERS)))
        samples = speeds.in_turns(report, turns, prompts, arguments.rounds, REPEATS, lambda turn, prompt: speeds.prefill_rate(
            turn.ask(prompt, 1), TOKENS, turn.is_own))
    report.raw["samples"] = samples
    speeds.add_ratio(report, "exact class (bf16)", samples, EXACT, PEERS, EXACT_RATIO)
    speeds.add_ratio(report, "int8 class", samples, INT8, PEERS, INT8_RATIO)
