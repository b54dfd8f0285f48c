"""The engine against ONNX Runtime, one core each, interleaved."""

import os
import subprocess

import engine_bench
import machine
import run_interleaved
import texts
from programs import MODEL, PEER_PYTHON, PEERS, embed, scratch
from report import at_least, holds
from server import LineServer

TITLE = "Engine tokens/s per core against ONNX Runtime 1.30: fused graph, one thread, no spinning"
IS_TIMED = True

SHAPES = ("32x128", "32x16", "200x20")
FP32_RATIO_MIN = {"32x16": 1.05}
FP32_RATIO_MIN_ELSE = 1.1
# With AMX only.
BF16_OVER_FP32_MIN = 5.0
BF16_OVER_INT8_MIN = {"32x16": 1.8}
BF16_OVER_INT8_MIN_ELSE = 2.0


def onnx_models():
    folder = scratch("onnx")
    if not (folder / "int8.onnx").exists():
        subprocess.run([PEER_PYTHON, PEERS / "ort_serve.py", "make", MODEL, folder], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder


def onnx_runtime(model, core):
    return LineServer([PEER_PYTHON, PEERS / "ort_serve.py", "serve", model], {core})


def rate(server, shape):
    """Tokens per second of one round of half a second."""
    answer = server.ask(shape)
    return {"tokens_per_s": answer["tokens"] / answer["wall_seconds"]}


def auto_precision():
    return embed(texts.sample_file(64), scratch("auto.npy"), "--devices", "1xcpu")["precision"]


def measure(report, arguments):
    core = min(os.sched_getaffinity(0))
    folder, auto = onnx_models(), auto_precision()
    servers = {
        "fp32": engine_bench.serve("fp32", {core}),
        "bf16": engine_bench.serve("bf16", {core}),
        "onnx fp32": onnx_runtime(folder / "fp32.onnx", core),
        "onnx int8": onnx_runtime(folder / "int8.onnx", core),
    }
    report.raw["auto"] = auto
    for shape in SHAPES:
        for server in servers.values():
            server.ask(shape)
        samples = run_interleaved.interleave(
            {name: (lambda s=server: rate(s, shape)) for name, server in servers.items()}, arguments.rounds)
        report.raw[shape] = samples
        print(f"  note  {shape}: " + ", ".join(
            f"{name} {run_interleaved.median(rows, 'tokens_per_s'):,.0f} tok/s" for name, rows in samples.items()))
        check(report, shape, samples, auto)
    for server in servers.values():
        server.close()


def check(report, shape, samples, auto):
    def ratio(ours, theirs):
        return run_interleaved.ratio(samples, ours, theirs, "tokens_per_s")

    report.add(at_least(f"{shape}: fp32 over its fp32", ratio("fp32", "onnx fp32"),
                        FP32_RATIO_MIN.get(shape, FP32_RATIO_MIN_ELSE), unit="x"))
    if machine.has_amx():
        report.add(at_least(f"{shape}: bf16 over its fp32", ratio("bf16", "onnx fp32"), BF16_OVER_FP32_MIN, unit="x"))
        report.add(at_least(f"{shape}: bf16 over its int8", ratio("bf16", "onnx int8"),
                            BF16_OVER_INT8_MIN.get(shape, BF16_OVER_INT8_MIN_ELSE), unit="x"))
    elif auto == "fp32":
        report.add(holds(f"{shape}: auto is not slower than fp32", True, "auto is fp32 here"))
    else:
        report.add(at_least(f"{shape}: auto ({auto}) over fp32", ratio(auto, "fp32"), 1.0, unit="x"))
