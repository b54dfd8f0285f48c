"""What a second CPU device adds, as a share of what a second bare engine loop adds."""

import os
import statistics

import engine_bench
import run_interleaved
import texts
from programs import embed, scratch
from report import at_least

TITLE = "2xcpu against 1xcpu with one core a device, as a share of what two bare engine loops gain"
IS_TIMED = True

SHARE_MIN = 0.95
SHAPE = "200x20"
LOOP_COUNT = 8  # of half a second each


def command_rate(source, devices):
    result = embed(source, scratch("scaling.npy"), "--devices", devices, "--cores-per-device", "1", "--precision", "fp32")
    return {"tokens_per_s": result["token_count"] / result["elapsed_seconds"], "report": result}


def loop_rate(servers):
    """Tokens per second of all `servers` together: each answers LOOP_COUNT requests at the same time."""
    speeds = []
    for _ in range(LOOP_COUNT):
        for server in servers:
            server.send(SHAPE)
        answers = [server.receive() for server in servers]
        speeds.append(sum(answer["tokens"] / answer["wall_seconds"] for answer in answers))
    return {"tokens_per_s": statistics.median(speeds)}


def measure(report, arguments):
    source, cores = texts.sample_file(), sorted(os.sched_getaffinity(0))[:2]
    loops = [engine_bench.serve("fp32", {core}) for core in cores]
    for loop in loops:
        loop.ask(SHAPE)
    samples = run_interleaved.interleave({
        "one device": lambda: command_rate(source, "1xcpu"),
        "two devices": lambda: command_rate(source, "2xcpu"),
        "one loop": lambda: loop_rate(loops[:1]),
        "two loops": lambda: loop_rate(loops),
    }, arguments.rounds)
    for loop in loops:
        loop.close()
    report.raw["samples"] = samples
    devices = run_interleaved.ratio(samples, "two devices", "one device", "tokens_per_s")
    bare = run_interleaved.ratio(samples, "two loops", "one loop", "tokens_per_s")
    print(f"  note  two devices {devices:.3f}x one, two bare loops {bare:.3f}x one")
    report.add(at_least("gain of the devices / gain of the bare loops", devices / bare, SHARE_MIN, digits=3))
