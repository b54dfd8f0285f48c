"""How long planning takes, from one node to ten thousand GPUs."""

import json
import os
import subprocess

from programs import BUILD
from report import at_most

TITLE = "The speed of planning, one thread: a node, 10,000 GPUs in order, 10,000 GPUs with topology and T x P x D"
IS_TIMED = True

NODE_MS_MAX, ORDER_MS_MAX, SWEEP_MS_MAX = 1.0, 5.0, 100.0
GROWTH_MAX = 2.2  # of memory, for twice the layers and twice the devices


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "planner_bench"], check=True, stdout=subprocess.DEVNULL)
    core = min(os.sched_getaffinity(0))
    done = subprocess.run([BUILD / "bin/planner_bench"], capture_output=True, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    result = json.loads(done.stdout)
    report.raw.update(result)
    report.add(at_most("100 layers on a node of 8 GPUs of two kinds, the slowest of P1 to P4", result["node_ms"],
                       NODE_MS_MAX, digits=3, unit=" ms"))
    report.add(at_most("1,000 layers on 10,000 GPUs of four kinds, in a fixed order", result["order_ms"], ORDER_MS_MAX,
                       digits=2, unit=" ms"))
    report.add(at_most(f"the same on 1,250 nodes of 8: machine, groups, {result['sweep_choices']} legal T x P x D, order",
                       result["sweep_ms"], SWEEP_MS_MAX, digits=2, unit=" ms"))
    for name, what in (("order", "in a fixed order"), ("sweep", "with topology and T x P x D")):
        growth = result[f"{name}_twice_peak_bytes"] / result[f"{name}_peak_bytes"]
        report.add(at_most(f"memory {what}, {result[f'{name}_peak_bytes'] / 1e6:.2f} MB: twice the layers and devices take",
                           growth, GROWTH_MAX, digits=2, unit="x"))
    report.add(at_most(f"all of the plan there, with memory in bytes and reasons: {result['plan_copies']:,} copies, "
                       f"{result['plan_peak_bytes'] / 1e6:.1f} MB", result["plan_ms"], SWEEP_MS_MAX, digits=0, unit=" ms"))
