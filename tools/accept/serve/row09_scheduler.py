"""The scheduler's own code in simulation: strategies side by side, unequal devices, a burst, random faults."""

import json
import subprocess

from programs import BUILD
from report import at_least, holds

TITLE = "The scheduler in simulation: strategies under heavy tails, unequal speeds, a burst, random faults"
IS_TIMED = False

P99_RATIO_MIN = 5.0       # round_robin's p99 / auto's
SPEED_SHARE_MIN = 0.95    # of 1 + 1 + 1 + 1/4
BURST = 37
BY_HASH = "static_partition"  # does not look at who is idle
TEXTS = 300_000  # the tail of fewer wavers too much with the seed
SEEDS, SEEDS_LONG = 200, 10_000


def simulate(*words):
    """What the program prints; it ends with 1 when an invariant broke, which the checks show."""
    done = subprocess.run([BUILD / "bin/simulate", *map(str, words)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"simulate ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def show_table(machines):
    print(f"        {'strategy':<18}" + "".join(f"{name + ' p50':>12}{'p99':>10}{'max-min':>9}" for name in machines))
    for rows in zip(*machines.values()):
        cells = "".join(f"{row['p50_s']:>10.2f} s{row['p99_s']:>8.1f} s{row['utilisation_spread']:>9.2f}" for row in rows)
        print(f"        {rows[0]['strategy']:<18}{cells}", flush=True)


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "simulate"], check=True, stdout=subprocess.DEVNULL)

    result = report.raw["strategies"] = simulate("strategies", TEXTS, arguments.seed)
    machines = {name: result[name] for name in ("equal", "mixed")}
    show_table(machines)
    for name, rows in machines.items():
        p99 = {row["strategy"]: row["p99_s"] for row in rows}
        report.add(at_least(f"8 {name} devices, load {result['load']}, {result['texts']:,} texts: p99 of round_robin "
                            f"({p99['round_robin']:.0f} s) / of auto ({p99['auto']:.1f} s)",
                            p99["round_robin"] / p99["auto"], P99_RATIO_MIN, digits=1, unit="x"))
    broken = [row["violations"] for rows in machines.values() for row in rows if row["violations"]]
    report.add(holds("invariants broken in these runs", not broken, str(len(broken)), "0"))

    speeds = report.raw["speeds"] = simulate("speeds", arguments.seed)
    report.add(at_least("speeds 1, 1, 1, 1/4, saturated: auto", speeds["auto"], SPEED_SHARE_MIN * 3.25, digits=3))

    splits = report.raw["burst"] = simulate("burst", BURST)
    for strategy, served in splits.items():
        if strategy == BY_HASH:
            continue
        is_even = sum(served) == BURST and abs(served[0] - served[1]) <= 3
        report.add(holds(f"{BURST} texts at once onto two idle devices: {strategy}", is_even,
                         " / ".join(map(str, served)), "18 / 19, +- 1"))

    seeds = SEEDS_LONG if arguments.long else SEEDS
    faults = report.raw["faults"] = simulate("faults", seeds)
    report.add(holds(f"{seeds:,} random worlds, {faults['deaths']:,} deaths of workers, {faults['answered']:,} texts answered: "
                     "worlds in which a text was lost or answered twice, or a bound or a book was wrong",
                     not faults["broken"], str(len(faults["broken"])), "0"))
