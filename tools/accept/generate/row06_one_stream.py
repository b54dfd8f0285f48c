"""One stream of SmolLM2: 128 tokens behind a prompt of 128, ours and the peers in turn, and what the memory gives meanwhile."""

import contextlib
import statistics

import run_interleaved
from generate import contenders, speeds
from generate.class_bytes import bytes_per_token
from generate.read_bandwidth import Reader
from generate.reference import SMOLLM2
from report import at_least

TITLE = "One stream, 128 after 128: llama.cpp, ONNX Runtime, OpenVINO and ours in the same run, and of the read bandwidth"
IS_TIMED = True

PROMPT_TOKENS, REPLY_TOKENS, REPEATS = 128, 128, 3
OWN = {"ours, 4-bit": "own", "ours, 8-bit": "int8", "ours, bf16": "bf16"}
PEERS = {"llama.cpp Q4_0": lambda: contenders.llama_server("Q4_0"), "ONNX Runtime int4": lambda: contenders.onnxruntime("int4"),
         "OpenVINO int4": lambda: contenders.openvino("int4"), "llama.cpp Q8_0": lambda: contenders.llama_server("Q8_0"),
         "llama.cpp BF16": lambda: contenders.llama_server("BF16")}
# Ours: whom it is set against, how many times as fast, and which share of the read bandwidth.
DEMANDS = {"ours, 4-bit": (("llama.cpp Q4_0", "ONNX Runtime int4", "OpenVINO int4"), 1.8, 0.45),
           "ours, 8-bit": (("llama.cpp Q8_0",), 1.8, 0.6),
           "ours, bf16": (("llama.cpp BF16",), 1.6, 0.7)}

skip_reason = contenders.skip_reason


def measure(report, arguments):
    prompts = speeds.id_prompts(PROMPT_TOKENS, arguments.rounds * (REPEATS + 1))
    reader = Reader()
    with contextlib.ExitStack() as stack:
        turns = contenders.all_up(stack, report, contenders.prepared(report, contenders.makers(OWN, PEERS)))
        samples = speeds.in_turns(report, turns, prompts, arguments.rounds, REPEATS, lambda turn, prompt: speeds.decode_rate(
            turn.ask(prompt, REPLY_TOKENS), turn.is_own), {"bandwidth": reader.sample})
    sizes = {name: bytes_per_token(SMOLLM2, precision) for name, precision in OWN.items()}
    report.raw.update({"samples": samples, "bytes_per_token": sizes})
    bandwidth = run_interleaved.median(samples["bandwidth"], "bytes_per_s")
    print("  note  memory is read at " + f"{bandwidth / 1e9:.1f} GB/s; a token reads " +
          ", ".join(f"{size / 1e6:.1f} MB ({name})" for name, size in sizes.items()), flush=True)
    for name, (peers, factor, part) in DEMANDS.items():
        speeds.add_ratio(report, name, samples, name, peers, factor, sizes[name])
        report.add(at_least(f"{name}: share of the read bandwidth", statistics.median(speeds.share(samples, name, sizes[name])), part))
