"""Three times more than it can do, with half a second of queue; and the speeds beside those of an earlier build."""

from ground import baseline
from programs import MODEL
from report import at_least, at_most, holds
from serve import load
from serve.running import serving

TITLE = "3x the capacity for 60 s, queue budget 500 ms: goodput and what the accepted wait"
IS_TIMED = True

TEXTS, SECONDS = 32, 60
BUDGET, ANSWERED_S, GOODPUT, REFUSAL_MS = "500ms", 1.0, 0.95, 5


def measured(seconds, *options, environment=None):
    """Loads at a full queue, at nine tenths of what that gave, and at three times as much."""
    bodies = load.write_bodies("ground-overload.bodies", TEXTS, 2000, encoding="base64")
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", "--queue-budget", BUDGET, *options, environment=environment,
                 name="ground-overload") as server:
        full = load.run(server, bodies, "--closed", seconds=seconds / 4, connections=4)
        # The generator takes processor time too: capacity is goodput at nine tenths of what a full queue gave.
        at_capacity = load.run(server, bodies, "--rate", 0.9 * full["ok_per_second"], seconds=seconds / 3, connections=64)
        capacity = at_capacity["ok_per_second"] / 0.9
        flood = load.run(server, bodies, "--rate", 3 * capacity, seconds=seconds, connections=512)
    return {"full": full, "at_capacity": at_capacity, "capacity": capacity, "flood": flood}


def measure(report, arguments):
    load.build("serving_load", "muster", "muster-worker")
    found = measured(SECONDS)
    report.raw.update(found)
    flood = found["flood"]
    print(f"  capacity {found['capacity'] * TEXTS:.0f} texts/s; sent {flood['sent_per_second'] * TEXTS:.0f}; answered {flood['statuses']}")
    shares = {"max_ms": 1.0, "p999_ms": 0.999, "p99_ms": 0.99, "p90_ms": 0.9}  # at least so many of the answers came by then
    in_time = max((share for name, share in shares.items() if flood[name] <= 1000 * ANSWERED_S), default=0)
    within = flood["ok_per_second"] * in_time
    report.add(at_least(f"answers within {ANSWERED_S:g} s, of the capacity", within / found["capacity"], GOODPUT, 3))
    report.add(at_most("99th percentile of an accepted request", flood["p99_ms"] / 1000, ANSWERED_S, 3, " s"))
    report.add(at_most("99th percentile of a refusal", flood["refused_p99_ms"], REFUSAL_MS, 2, " ms"))
    report.add(holds("refusals with Retry-After", flood["refused_with_retry_after"] == flood["refused"],
                     f"{flood['refused_with_retry_after']} of {flood['refused']}", "all"))
    baseline.measure(report, arguments)
