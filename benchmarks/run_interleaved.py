#!/usr/bin/env python3
"""Runs contenders in turn, round by round, so that whatever changes on the machine meets them all alike.

    benchmarks/run_interleaved.py --rounds 5 --out result.json 'ours=build/bin/muster …' 'theirs=python peer.py'

Prints for each contender the median wall time, the CPU seconds (children included) and the spread, and the
median of the per-round ratios to the first. Refuses on a busy machine. As a module: `interleave`.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROUNDS_MIN = 5
IDLE_SHARE_MIN = 0.9


def cpu_ticks():
    """Of all CPUs since the start: user, nice, system, idle, iowait, irq, softirq, steal. Source: proc(5), /proc/stat."""
    return [int(x) for x in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]


def idle_share(window_s=2.0):
    def times():
        fields = cpu_ticks()
        return fields[3] + fields[4], sum(fields)
    idle, total = times()
    time.sleep(window_s)
    idle_after, total_after = times()
    return (idle_after - idle) / max(1, total_after - total)


def run_once(command):
    """Runs a shell command to its end: {"wall_s", "cpu_s"}."""
    start, before = time.monotonic(), os.times()
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return {"wall_s": time.monotonic() - start,
            "cpu_s": after.children_user + after.children_system - before.children_user - before.children_system}


def interleave(contenders, rounds, leaves_out=None):
    """Calls every contender once a round and returns {name: [sample, …]}.

    A contender is a function that returns a dict of figures ("wall_s" among them, for `summary`). The order
    is turned by one each round, so that nobody always runs after the same neighbour. One that fails ends it
    all, unless `leaves_out(name, index, error)` says that the others go on: then it has no samples.
    """
    samples = {name: [] for name in contenders}
    for index in range(rounds):
        names = list(samples)
        turn = index % max(1, len(names))
        for name in names[turn:] + names[:turn]:
            try:
                samples[name].append(contenders[name]())
            except (RuntimeError, OSError) as error:
                if leaves_out is None or not leaves_out(name, index, error):
                    raise
                del samples[name]
    return samples


def median(samples, key):
    return statistics.median(sample[key] for sample in samples)


def ratio(samples, ours, theirs, key):
    """The median over the rounds of ours / theirs in `key`."""
    return statistics.median(a[key] / b[key] for a, b in zip(samples[ours], samples[theirs]))


def summary(samples):
    first = next(iter(samples))
    lines = []
    for name, rows in samples.items():
        walls = [row["wall_s"] for row in rows]
        lines.append(f"{name:<24} wall {statistics.median(walls):9.3f} s   cpu {median(rows, 'cpu_s'):9.3f} s   "
                     f"spread {min(walls):.3f}..{max(walls):.3f}   wall of {first} / its own "
                     f"{ratio(samples, first, name, 'wall_s'):.3f}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("contenders", nargs="+", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=ROUNDS_MIN)
    parser.add_argument("--out", type=pathlib.Path, help="raw samples as JSON")
    arguments = parser.parse_args()
    if arguments.rounds < ROUNDS_MIN:
        parser.error(f"at least {ROUNDS_MIN} rounds")
    share = idle_share()
    if share < IDLE_SHARE_MIN:
        sys.exit(f"the machine is busy: idle share {share:.2f}, at least {IDLE_SHARE_MIN} is wanted")
    commands = dict(pair.split("=", 1) for pair in arguments.contenders)
    samples = interleave({name: (lambda c=command: run_once(c)) for name, command in commands.items()},
                         arguments.rounds)
    print(summary(samples))
    if arguments.out:
        arguments.out.write_text(json.dumps({"commands": commands, "idle_share_before": share,
                                             "samples": samples}, indent=1) + "\n")


if __name__ == "__main__":
    main()
