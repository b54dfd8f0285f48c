"""What HTTP, parsing, placing and answering add to one text."""

import statistics

from programs import MODEL, scratch
from report import at_most
from serve import load
from serve.running import serving

TITLE = "One 16-token text at a time, 50 a second, against the worker fed the same arrivals without HTTP"
IS_TIMED = True

RATE, SECONDS, P50_MS, P99_MS = 50, 12, 0.3, 1.0
# Of each round: a worker is faster or slower than the one started before it.
STARTS = 4
# [CLS] and [SEP], and fourteen words of one token each.
TEXT = "a small red house stands near the old river and the green hill today"


def take_turns(texts, bodies):
    """Both at once, in turns of three seconds: a machine's speed changes by more than the limit within ten."""
    with serving(MODEL, "--devices", "1xcpu", "--cores-per-device", "1", "--no-cache-enabled", name="latency") as server:
        precision = load.served_precision(server)
        assert load.run(server, bodies, "--rate", RATE, seconds=1, connections=1)["statuses"] == {"200": 50}
        alone = load.WorkerAlone(texts, "--rate", RATE, "--turn", "1/2", cores="0", precision=precision, batch=1, seconds=SECONDS)
        through = load.run(server, bodies, "--rate", RATE, "--turn", "0/2", seconds=SECONDS, connections=4)
        return {"through": through, "alone": alone.report()}


def measure(report, arguments):
    load.build("serving_load", "worker_direct", "muster", "muster-worker")
    texts = scratch("one-text.txt")
    texts.write_text(TEXT + "\n")
    bodies = load.write_bodies("one-text.bodies", 1, 1, texts=[TEXT])
    rounds = [take_turns(texts, bodies) for _ in range(STARTS * arguments.rounds)]
    report.raw["rounds"] = rounds
    added = {name: statistics.median(r["through"][name] - r["alone"][name] for r in rounds) for name in ("p50_ms", "p99_ms")}
    print(f"  worker alone: p50 {statistics.median(r['alone']['p50_ms'] for r in rounds):.3f} ms, "
          f"p99 {statistics.median(r['alone']['p99_ms'] for r in rounds):.3f} ms")
    report.add(at_most("added to the median", added["p50_ms"], P50_MS, 3, " ms"))
    report.add(at_most("added to the 99th percentile", added["p99_ms"], P99_MS, 3, " ms"))
