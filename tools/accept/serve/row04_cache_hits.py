"""Texts that were asked before."""

import json
import random
import re
import shutil
import statistics
import subprocess
import time

from programs import MODEL, scratch
from report import at_least, at_most, holds
from serve import load
from serve.running import serving

TITLE = "Cache hits with wrk on the same two cores, their bits, and the cache after kill -9"
IS_TIMED = True

ROUNDS, SECONDS, CONNECTIONS, TEXTS = 3, 10, 64, 1000
RATE, P99_MS, READY_S = 10_000, 5, 2.0
# One token each in the vocabulary of BERT; with [CLS] and [SEP] fourteen of them are sixteen tokens.
WORDS = ("small red house near old river green hill today white horse long road high stone wall dark forest cold wind blue sea "
         "open door warm fire good bread fresh water quiet town young king brave ship bright star deep lake fast train").split()

SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at = 0
function request()
  at = at %% #bodies + 1
  return wrk.format("POST", "/v1/embeddings", {["Content-Type"] = "application/json"}, bodies[at])
end
function done(summary, latency)
  io.write(string.format('{"requests": %%d, "microseconds": %%d, "errors": %%d, "p50_us": %%d, "p99_us": %%d, "max_us": %%d}\\n',
    summary.requests, summary.duration, summary.errors.status + summary.errors.connect + summary.errors.read +
    summary.errors.write + summary.errors.timeout, latency:percentile(50), latency:percentile(99), latency.max))
end
"""


def skip_reason():
    return None if shutil.which("wrk") else "wrk is not installed"


def texts_of_16_tokens(count):
    generator = random.Random(4)
    return [" ".join(generator.choices(WORDS, k=14)) for _ in range(count)]


def lookups(server):
    """Hits and misses since the server's start."""
    text = server.get("/metrics")[1].decode()
    return [int(float(re.search(r'cache_lookups_total\{[^}]*result="%s"[^}]*\} (\S+)' % result, text)[1])) for result in ("hit", "miss")]


def ask(server, texts, encoding):
    """The vectors as the client gets them: bits as base64, numbers as they are printed."""
    vectors = []
    for at in range(0, len(texts), 50):
        body = {"model": "", "input": texts[at:at + 50], "encoding_format": encoding}
        status, answer = server.call("POST", "/v1/embeddings", body)
        assert status == 200, answer[:300]
        vectors += [json.dumps(item["embedding"]) for item in json.loads(answer)["data"]]
    return vectors


def wrk(server, bodies, seconds=SECONDS):
    script = scratch("hits.lua")
    script.write_text(SCRIPT % bodies)
    done = subprocess.run(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", "-s", script, server.url],
                          check=True, capture_output=True, text=True, timeout=seconds + 60)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["errors"] == 0, found
    return {**found, "per_second": found["requests"] / (found["microseconds"] / 1e6)}


def show_hits(report, texts):
    with serving(MODEL, "--devices", "2xcpu", name="hits") as server:
        missed = ask(server, texts, "base64")
        again = ask(server, texts, "base64")
        as_numbers = ask(server, texts, "float")
        hits, misses = lookups(server)
        report.raw["bits"] = {"hits": hits, "misses": misses}
        distinct = len(set(texts))
        report.add(holds("hits bitwise equal to their misses", missed == again and misses == distinct,
                         f"{sum(a == b for a, b in zip(missed, again))} of {len(texts)}, {misses} misses", f"all, {distinct} misses"))
        report.add(holds("the same numbers in JSON each time", ask(server, texts, "float") == as_numbers, "compared as text"))
        for encoding in ("float", "base64"):
            bodies = load.write_bodies(f"hits-{encoding}.bodies", 1, len(texts), encoding=encoding, texts=texts)
            before = lookups(server)
            rounds = [wrk(server, bodies) for _ in range(ROUNDS)]
            after = lookups(server)
            report.raw[encoding] = {"rounds": rounds, "lookups": [before, after]}
            print(f"  {encoding}: " + ", ".join(f"{r['per_second']:.0f} req/s" for r in rounds))
            report.add(at_least(f"{encoding}: requests a second", statistics.median(r["per_second"] for r in rounds), RATE, 0))
            report.add(at_most(f"{encoding}: 99th percentile", statistics.median(r["p99_us"] for r in rounds) / 1e3, P99_MS, 2, " ms"))
            report.add(holds(f"{encoding}: misses meanwhile", after[1] == before[1], str(after[1] - before[1]), "0"))


def show_restart(report, texts):
    file = scratch("vectors.cache")
    file.unlink(missing_ok=True)
    words = (MODEL, "--devices", "2xcpu", "--cache-file", file)
    with serving(*words, name="killed") as server:
        before = ask(server, texts, "base64")
        server.process.kill()
        server.process.wait()
    start = time.monotonic()
    with serving(*words, name="restarted") as server:
        ready_s = time.monotonic() - start
        after = ask(server, texts, "base64")
        hits, misses = lookups(server)
    report.raw["restart"] = {"ready_s": ready_s, "hits": hits, "misses": misses, "file_bytes": file.stat().st_size}
    file.unlink()
    report.add(at_most("after kill -9: ready again", ready_s, READY_S, 2, " s"))
    report.add(at_least("after kill -9: hit rate", hits / max(hits + misses, 1), 1.0, 3))
    report.add(holds("after kill -9: the same bits", before == after, f"{sum(a == b for a, b in zip(before, after))} of {len(texts)}", "all"))


def measure(report, _arguments):
    load.build("muster", "muster-worker")
    texts = texts_of_16_tokens(TEXTS)
    show_hits(report, texts)
    show_restart(report, texts)
