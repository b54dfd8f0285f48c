"""One key's bulk beside another key's queries."""

import collections
import hashlib
import http.client
import json
import random
import statistics
import threading
import time

from ground.row04_first_minute import WORDS
from programs import MODEL, scratch
from report import at_most, holds
from serve import load
from serve.running import serving

TITLE = "two keys, one with 12 bulk connections in whatever lane it claims: the other's queries"
IS_TIMED = True

CONNECTIONS, TEXTS, WORDS_A_TEXT = 12, 32, 30
ROUNDS, SECONDS, QUERY_EVERY_S = 4, 6, 0.05
HALF_A_BATCH_S = 0.05   # of batch_time, 100 ms unless it is set
ALIKE = 0.2
LANES = {"bulk": "bulk", "interactive": "interactive", "none": None}  # that the flood claims
KEYS = {"bulk": "key-of-the-bulk", "queries": "key-of-the-queries"}


def write_keys():
    path = scratch("fair.keys")
    lines = ["keys:"]
    for name, key in KEYS.items():
        lines += [f"  - name: {name}", f"    sha256: {hashlib.sha256(key.encode()).hexdigest()}", "    scopes: [embed, read]"]
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    return path


def text(source, words):
    return " ".join(source.choices(WORDS, k=words))


class Client:
    def __init__(self, port, key):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEYS[key]}"}

    def ask(self, texts, lane):
        body = {"input": texts, "model": "", "encoding_format": "base64", **({"lane": lane} if lane else {})}
        begin = time.monotonic()
        self.connection.request("POST", "/v1/embeddings", json.dumps(body), self.headers)
        answer = self.connection.getresponse()
        answer.read()
        return answer.status, time.monotonic() - begin


def flood(port, lane, is_over, counts):
    def run(number):
        source, client = random.Random(number), Client(port, "bulk")
        while not is_over.is_set():
            status, _ = client.ask([text(source, WORDS_A_TEXT) for _ in range(TEXTS)], lane)
            counts[status] += 1
            if status == 429:
                is_over.wait(0.2)

    return [threading.Thread(target=run, args=(i,)) for i in range(CONNECTIONS)]


def queries(port, seed):
    """Latencies of single queries, one after the other. At random moments: in a steady rhythm they met the same part of each
    batch for seconds, and the same flood asked twice seemed to be two."""
    source, client, found = random.Random(seed), Client(port, "queries"), []
    end, at = time.monotonic() + SECONDS, time.monotonic()
    while at < end:
        time.sleep(max(0, at - time.monotonic()))
        status, taken = client.ask([text(source, 8)], None)
        assert status == 200, status
        found.append(taken)
        at = max(at + source.uniform(0.5, 1.5) * QUERY_EVERY_S, time.monotonic())
    return found


def beside(server, lane, seed):
    is_over, counts = threading.Event(), collections.Counter()
    threads = flood(server.port, lane, is_over, counts)
    for thread in threads:
        thread.start()
    time.sleep(2)
    try:
        found = queries(server.port, seed)
        assert all(thread.is_alive() for thread in threads), "a connection of the flood has ended"
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    return found, counts


def measured(*options, environment=None):
    """Latencies alone and beside each flood, by the lane that the flood claims. The floods take turns, each round in another
    order: the machine's own speed wavers by more from minute to minute than what is looked for."""
    names = list(LANES)
    found, counts = {name: [] for name in ["alone", *names]}, {name: collections.Counter() for name in names}
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", "--queue-budget", "5s", "--keys-file", write_keys(), *options,
                 environment=environment, name="fair") as server:
        queries(server.port, 1)
        for turn in range(ROUNDS):
            found["alone"] += queries(server.port, 2 + turn)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                latencies, answers = beside(server, LANES[name], 100 + turn)
                found[name] += latencies
                counts[name] += answers
    return found, {name: dict(answers) for name, answers in counts.items()}


def measure(report, _arguments):
    load.build("muster", "muster-worker")
    found, counts = measured()
    report.raw.update({"query_seconds": found, "flood_answers": counts})
    p50 = {name: statistics.median(values) for name, values in found.items()}
    print("  query p50: " + ", ".join(f"{name} {1000 * value:.1f} ms" for name, value in p50.items()) + f"; the flood's answers: {counts}")
    for name, answers in counts.items():
        # A flood that ended, or was refused, would leave the query alone.
        is_flood = answers.get(200, 0) >= ROUNDS * SECONDS and set(answers) <= {200, 429}
        report.add(holds(f"bulk that claims {name} is there all the time", is_flood, str(answers), f">= {ROUNDS * SECONDS} answers, 200 or 429"))
    for name in LANES:
        report.add(at_most(f"query p50 beside bulk that claims {name}, above alone", 1000 * (p50[name] - p50["alone"]),
                           1000 * HALF_A_BATCH_S, 2, " ms"))
    for name in ("interactive", "none"):
        share = p50[name] / p50["bulk"]
        report.add(holds(f"p50 beside bulk that claims {name}, of that beside honest bulk", share <= 1 + ALIKE, f"{share:.2f}",
                         f"<= {1 + ALIKE}"))
