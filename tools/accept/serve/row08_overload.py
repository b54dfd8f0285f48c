"""Three times more than it can do."""

import pathlib
import re
import threading
import time

from programs import MODEL
from report import at_least, at_most, holds
from serve import load
from serve.running import serving

TITLE = "3x the capacity for 60 s, open loop, 32 texts a request"
IS_TIMED = True

TEXTS, SECONDS, BUDGET_S = 32, 60, 2.0
GOODPUT, REFUSAL_MS, GROWTH_PERCENT = 0.95, 5, 5


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def measure(report, _arguments):
    load.build("serving_load", "muster", "muster-worker")
    bodies = load.write_bodies("overload.bodies", TEXTS, 2000, encoding="base64")
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", "--queue-budget", f"{BUDGET_S}s", name="overload") as server:
        full = load.run(server, bodies, "--closed", seconds=15, connections=16)
        estimate = full["ok_per_second"]
        # Capacity as goodput at nine tenths of what a full queue gave: the generator takes processor time too.
        at_capacity = load.run(server, bodies, "--rate", 0.9 * estimate, seconds=20, connections=64)
        capacity = at_capacity["ok_per_second"] / 0.9
        load.run(server, bodies, "--rate", 3 * capacity, seconds=20, connections=512)  # what overload allocates once
        before, samples, is_over = rss_kib(server.process.pid), [], threading.Event()

        def watch():
            while not is_over.wait(0.5):
                samples.append(rss_kib(server.process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        flood = load.run(server, bodies, "--rate", 3 * capacity, seconds=SECONDS, connections=512)
        is_over.set()
        watcher.join()
        begin = time.monotonic()
        server.embed(["the first one after the flood"])
        after_s = time.monotonic() - begin
    report.raw.update({"full": full, "at_capacity": at_capacity, "capacity": capacity, "flood": flood, "rss_kib": [before, *samples],
                       "answer_after_s": after_s})
    print(f"  capacity {capacity * TEXTS:.0f} texts/s; sent {flood['sent_per_second'] * TEXTS:.0f}; "
          f"answered {flood['statuses']}; a lone request right after: {after_s:.2f} s")
    growth = (max(samples) - before) / before * 100
    report.add(at_least("goodput of the capacity", flood["ok_per_second"] / capacity, GOODPUT, 3))
    report.add(at_most("99th percentile of a refusal", flood["refused_p99_ms"], REFUSAL_MS, 2, " ms"))
    report.add(holds("refusals with Retry-After", flood["refused_with_retry_after"] == flood["refused"],
                     f"{flood['refused_with_retry_after']} of {flood['refused']}", "all"))
    report.add(holds("nothing but answers and refusals", set(flood["statuses"]) <= {"200", "429"}, str(flood["statuses"]), "200 and 429"))
    report.add(at_most("growth of the server's memory", growth, GROWTH_PERCENT, 2, " %"))
    report.add(at_most("99th percentile of an accepted request", flood["p99_ms"] / 1000, 2 * BUDGET_S, 3, " s"))
