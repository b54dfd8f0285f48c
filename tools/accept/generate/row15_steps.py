"""The scheduler of a decoder's steps in the simulator: worlds of four traces, what must always hold, and the times that come of it."""

import subprocess

from programs import BUILD
from report import at_least, at_most, holds
from serve.row09_scheduler import simulate

TITLE = "The scheduler of steps in simulation: 10,000 worlds; prefix-heavy, long-prompt, bursty and mixed traces; nobody starves"
IS_TIMED = False  # the times are virtual

TRACES = ("prefix-heavy", "long-prompt", "bursty", "mixed")
WORLDS = 10_000  # of all traces together
# The longest wait of a sequence for its place, as a share of its bound: src/simulator/step_simulation.h. Where the worst of thousands of
# worlds comes nowhere near it, keeping it would show nothing.
WAIT_SHARE_MAX, WAIT_SHARE_MIN = 1.0, 0.2


def show_table(rows):
    print(f"        {'trace':<13}{'replies':>10}{'refused':>9}{'first token p50':>17}{'p95':>9}{'p99':>9}{'most':>9}{'a token p99':>13}{'whole p99':>11}"
          f"{'fill':>7}{'found':>7}{'preempted':>11}")
    for trace, row in rows.items():
        first = row["first_token"]
        print(f"        {trace:<13}{row['answered']:>10,}{row['refused']:>9,}{first['p50_s']:>15.3f} s{first['p95_s']:>7.2f} s{first['p99_s']:>7.2f} s"
              f"{first['most_s']:>7.2f} s{row['token']['p99_s'] * 1000:>10.0f} ms{row['end']['p99_s']:>9.2f} s{row['step_fill']:>7.2f}"
              f"{row['prefix_hits']:>7.2f}{row['preemptions']:>11,}", flush=True)


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "simulate"], check=True, stdout=subprocess.DEVNULL)
    each = WORLDS // len(TRACES)
    result = report.raw["steps"] = simulate("steps", each, arguments.seed)
    rows = {trace: result[trace] for trace in TRACES}
    show_table(rows)
    for trace, row in rows.items():
        broken = [f"seed {world['seed']}: {world['violations'][0]}" for world in row["broken"]]
        report.add(holds(f"{trace}: {each:,} worlds, {row['answered']:,} replies in {row['steps']:,} steps: worlds in which something broke",
                         not broken, "; ".join([str(len(broken)), *broken[:1]]), "0"))
        report.add(at_most(f"{trace}: the longest wait for a place, of its bound", row["wait_share_most"], WAIT_SHARE_MAX))
        report.add(at_least(f"{trace}: that wait shows how near the bound is", row["wait_share_most"], WAIT_SHARE_MIN))
        first = row["first_token"]
        report.add(holds(f"{trace}: time to the first token (virtual)", first["count"] > 0,
                         f"p99 {first['p99_s']:.2f} s, p50 {first['p50_s']:.3f} s, most {first['most_s']:.2f} s", "stated"))
    # A trace in which nothing of its kind happened would hold whatever the scheduler does.
    report.add(holds("prompts that begin behind kept blocks, prefix-heavy", rows["prefix-heavy"]["prefix_hits"] > 0.1,
                     f"{rows['prefix-heavy']['prefix_hits']:.2f} of their tokens", "> 0.1"))
    report.add(holds("sequences that were preempted, long-prompt", rows["long-prompt"]["preemptions"] > 0,
                     f"{rows['long-prompt']['preemptions']:,}", "> 0"))
    report.add(holds("replies that were refused, bursty", rows["bursty"]["refused"] > 0, f"{rows['bursty']['refused']:,}", "> 0"))
