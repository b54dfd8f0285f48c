"""Where the time of a GPU goes, kernel by kernel: the steady steps of one shape under Nsight Compute.

usage: kernels.py BENCH MODEL SHAPE     a line of JSON for each kernel, the one that takes most first

Each kernel is timed by itself, so the shares are of the kernels' own time: what starting them costs is not in it.
"""

import collections
import csv
import json
import re
import subprocess
import sys

SKIPPED = 4000  # kernels of the self-test at load and of the first steps
COUNTED = 700


def kind(name):
    """A kernel's name without its arguments, for torch's elementwise kernels with the operation."""
    operation = re.search(r"(GeluCUDAKernelImpl|CUDAFunctor_add|direct_copy_kernel|MulFunctor)", name)
    short = re.sub(r"^void |at::(native::)?|\(anonymous namespace\)::|<unnamed>::", "", name)
    return re.split(r"[<(]", short)[0] + (f" {operation.group(1)}" if operation else "")


def main():
    bench, model, shape = sys.argv[1:]
    run = subprocess.run(
        ["ncu", "--graph-profiling", "node", "--metrics", "gpu__time_duration.sum", "--launch-skip", str(SKIPPED), "--launch-count",
         str(COUNTED), "--csv", bench, model, "--device", "cuda", "--precision", "bf16", "--lanes", "1", "--seconds", "3", "--shape", shape],
        stdout=subprocess.PIPE, text=True, check=True)
    rows = csv.DictReader(line for line in run.stdout.splitlines() if line.startswith('"'))
    taken = collections.defaultdict(list)
    for row in rows:
        taken[kind(row["Kernel Name"])].append(float(row["Metric Value"].replace(",", "")))
    total = sum(map(sum, taken.values()))
    for name, times in sorted(taken.items(), key=lambda item: -sum(item[1])):
        print(json.dumps({"shape": shape, "kernel": name, "share": round(sum(times) / total, 3), "times": len(times),
                          "mean_us": round(sum(times) / len(times) / 1000, 2)}))


if __name__ == "__main__":
    main()
