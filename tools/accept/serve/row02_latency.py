"""What HTTP, parsing, placing and answering add to one text."""

import statistics

from programs import MODEL, scratch
from report import at_most
from serve import load
from serve.running import serving

TITLE = "One 16-token text at a time, 50 a second, against the worker fed the same arrivals without HTTP"
IS_TIMED = True

RATE, SECONDS, PAIRS, P50_MS, P99_MS = 50, 5, 4, 0.3, 1.0
# [CLS] and [SEP], and fourteen words of one token each.
TEXT = "a small red house stands near the old river and the green hill today"


def measure_through(bodies):
    """The answers of a new server, and the precision that it chose."""
    with serving(MODEL, "--devices", "1xcpu", "--cores-per-device", "1", "--no-cache-enabled", name="latency") as server:
        precision = load.served_precision(server)
        assert load.run(server, bodies, "--rate", 20, seconds=2, connections=1)["statuses"] == {"200": 40}
        return precision, load.run(server, bodies, "--rate", RATE, "--arrivals", "constant", seconds=SECONDS, connections=4)


def measure_alone(texts, precision):
    return load.worker_alone(texts, "--rate", RATE, cores="0", precision=precision, batch=1, seconds=SECONDS)


def measure(report, arguments):
    load.build("serving_load", "worker_direct", "muster", "muster-worker")
    texts = scratch("one-text.txt")
    texts.write_text(TEXT + "\n")
    bodies = load.write_bodies("one-text.bodies", 1, 1, texts=[TEXT])
    rounds = []
    # A worker is faster or slower than the one started before it by as much as the limit, and the machine changes over
    # seconds: many starts of short pieces, PAIRS a round, and now one, now the other first.
    precision = None
    for i in range(PAIRS * arguments.rounds):
        if i % 2 == 0:
            precision, through = measure_through(bodies)
            alone = measure_alone(texts, precision)
        else:
            alone = measure_alone(texts, precision)
            precision, through = measure_through(bodies)
        rounds.append({"through": through, "alone": alone})
    report.raw["rounds"] = rounds
    added = {name: statistics.median(r["through"][name] - r["alone"][name] for r in rounds) for name in ("p50_ms", "p99_ms")}
    print(f"  worker alone: p50 {statistics.median(r['alone']['p50_ms'] for r in rounds):.3f} ms, "
          f"p99 {statistics.median(r['alone']['p99_ms'] for r in rounds):.3f} ms")
    report.add(at_most("added to the median", added["p50_ms"], P50_MS, 3, " ms"))
    report.add(at_most("added to the 99th percentile", added["p99_ms"], P99_MS, 3, " ms"))
