"""Very many requests of random lengths, many of them left by their client: nothing is held afterwards."""

import pathlib
import random
import re
import threading
import time

from generate.replies import OPENINGS, skip_reason
from generate.streams import ask, decoder_server, metric
from programs import children_of
from report import at_most, holds

TITLE = "10,000 random requests, cancelled at random, and with --long an hour of them: nothing is held after them, memory is flat"
IS_TIMED = False

REQUESTS, CLIENTS, WARM_UP = 10_000, 32, 1_000
SOAK_S, PART = 3600, 5_000  # how long in all, and how many between two looks at the memory
LET_GO_S = 5
GROWTH_PERCENT = 2
CONTEXT = "1024"
CACHE = "64MiB"  # of each worker: 182 blocks. The warm-up fills it, and what is kept of prompts and replies is no growth after that


def resident_kib(pid):
    """What a process holds, and beside that what it has read of files that it maps: pages of the model's table of tokens, which come as the
    tokens do, at most the file, and which the kernel takes back when it wants them."""
    page = pathlib.Path(f"/proc/{pid}/status").read_text()
    found = {name: int(re.search(rf"{name}:\s+(\d+)", page)[1]) for name in ("RssAnon", "RssShmem", "RssFile")}
    return {"own": found["RssAnon"] + found["RssShmem"], "files": found["RssFile"]}


def run(server, count, seed, ends):
    """`count` requests from all clients together; each ends whole, cancelled by its client or with an error."""
    numbers, lock = iter(range(count)), threading.Lock()

    def client(index):
        generator = random.Random(seed * 1000 + index)
        while True:
            with lock:
                if next(numbers, None) is None:
                    return
            leaves = generator.random() < 0.4
            reply = ask(server, " ".join(generator.choices(OPENINGS, k=generator.choice((1, 1, 1, 4, 12)))),
                        pieces_most=generator.randrange(1, 6) if leaves else None,
                        max_tokens=generator.randrange(1, 24), temperature=generator.choice((0, 0.8)),
                        seed=generator.randrange(1 << 31))
            end = "error" if reply.error and reply.status != 429 else reply.status if reply.status != 200 else "left" if leaves else "whole"
            with lock:
                ends[end] = ends.get(end, 0) + 1
                if end == "error":
                    ends.setdefault("errors", []).append(reply.error)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def soak(server, arguments, ends, look):
    """Parts of requests until an hour has passed since it began."""
    until, parts = time.monotonic() + SOAK_S, 0
    while time.monotonic() < until:
        parts += 1
        run(server, PART, arguments.seed + 1 + parts, ends)
        look(REQUESTS + parts * PART)


def held_at_last(server):
    """Of each worker's cache: a worker lets go of what a client has left between two steps, so it is waited for."""
    until = time.monotonic() + LET_GO_S
    while True:
        page = server.get("/metrics")[1].decode()
        held = {device: float(value) for device, value in re.findall(
            r'^muster_generation_worker_kv_cache_usage_ratio\{[^}]*device="([^"]+)"[^}]*\} (\S+)$', page, re.MULTILINE)}
        if not any(held.values()) or time.monotonic() > until:
            return held


def measure(report, arguments):
    ends, samples = {}, []
    with decoder_server("--devices", "2xcpu", "--max-length", CONTEXT, "--kv-cache-size", CACHE, name="generate-soak") as server:
        run(server, WARM_UP, arguments.seed, {})
        pids = [server.process.pid, *children_of(server.process.pid)]

        def look(requests):
            samples.append({"requests": requests, "resident_kib": [resident_kib(pid) for pid in pids]})

        look(0)
        run(server, REQUESTS, arguments.seed + 1, ends)
        look(REQUESTS)
        if arguments.long:
            soak(server, arguments, ends, look)
        left = [metric(server, f"muster_generation_{name}") for name in ("running", "waiting")]
        held = held_at_last(server)
        code = server.stop()
    report.raw.update(seed=arguments.seed, ends=ends, samples=samples)
    report.add(holds("requests that failed", not ends.get("error"), f"{ends}", "0"))
    report.add(holds("running and waiting after the last", left == [0, 0], f"{left}", "0"))
    report.add(holds("of each worker's cache, what is held after the last", held == {"cpu:0": 0, "cpu:1": 0}, f"{held}", "0"))
    first, last = samples[0], samples[-1]
    pairs = list(zip(first["resident_kib"], last["resident_kib"]))
    growth = max((b["own"] - a["own"]) / a["own"] * 100 for a, b in pairs)
    whole = max((sum(b.values()) - sum(a.values())) / sum(a.values()) * 100 for a, b in pairs)
    report.add(at_most(f"growth of memory over {last['requests']:,} requests", growth, GROWTH_PERCENT, 2, " %"))
    print(f"  note  with pages of the model's file, which are read as new tokens come: {whole:.2f} %", flush=True)
    report.add(holds("it ends well", code == 0, f"exit code {code}", "0"))
