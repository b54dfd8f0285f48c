"""Tokens per second of the engine against ONNX Runtime on one core, interleaved round by round.

    python benchmarks/engine/against_onnxruntime.py build/bin/encode_bench MODEL_FOLDER fused.onnx

Both sides run on the same CPU with one thread, in turns of about half a second, so that noise of the
machine meets both. One JSON line per shape: medians, their ratio, and the same by CPU-seconds, which
does not count the time that other programs took.
"""

import argparse
import json
import os
import statistics
import subprocess
import time

import numpy
import onnxruntime


class Runtime:
    """ONNX Runtime over one graph: one thread, no spinning."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def round(self, shape, seconds=0.5):
        texts, length = map(int, shape.split("x"))
        ids = numpy.random.randint(1000, 20000, (texts, length))
        wanted = {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": 0 * ids}
        feed = {
            i.name: wanted[i.name].astype(numpy.int64 if i.type == "tensor(int64)" else numpy.int32)
            for i in self.session.get_inputs()
        }
        self.session.run(None, feed)
        wall, cpu, batches = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - wall < seconds:
            self.session.run(None, feed)
            batches += 1
        return {
            "tokens": batches * ids.size,
            "wall_seconds": time.perf_counter() - wall,
            "cpu_seconds": time.process_time() - cpu,
        }


class Engine:
    """encode_bench --serve as a child."""

    def __init__(self, program, model, precision):
        self.child = subprocess.Popen(
            [program, model, "--precision", precision, "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )

    def round(self, shape):
        self.child.stdin.write(shape + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("encode_bench")
    parser.add_argument("model")
    parser.add_argument("onnx")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", default="32x128,32x16,200x20")
    parser.add_argument("--precisions", default="fp32,bf16")
    arguments = parser.parse_args()

    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sides = {"onnxruntime": Runtime(arguments.onnx)}
    for precision in arguments.precisions.split(","):
        sides[precision] = Engine(arguments.encode_bench, arguments.model, precision)
    for shape in arguments.shapes.split(","):
        rounds = {name: [] for name in sides}
        for _ in range(arguments.rounds):
            for name, side in sides.items():
                rounds[name].append(side.round(shape))
        line = {"shape": shape, "rounds": arguments.rounds}
        for clock in ("wall", "cpu"):
            speed = {
                name: statistics.median(r["tokens"] / r[f"{clock}_seconds"] for r in results)
                for name, results in rounds.items()
            }
            line[clock] = {name: round(value) for name, value in speed.items()}
            line[clock + "_ratio"] = {
                name: round(value / speed["onnxruntime"], 3) for name, value in speed.items()
            }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
