"""Very many requests."""

import pathlib
import random
import re

from programs import MODEL, TESTS, children_of
from report import at_least, at_most, holds
from serve import load
from serve.running import serving
from texts import corpus_lines

TITLE = "1,000,000 requests through the zero worker, 50,000 through a real one, random lengths"
IS_TIMED = False

GROWTH_PERCENT = 2
ZERO_WORKER = TESTS / "plain" / "bin" / "zero_worker"


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def bodies(name, count, seed):
    """Requests of 1 to 16 texts of 1 to 250 words."""
    generator, words = random.Random(seed), " ".join(corpus_lines()[:5000]).split()
    texts = [" ".join(generator.choices(words, k=int(generator.lognormvariate(2.5, 1)) % 250 + 1)) for _ in range(count)]
    return load.write_bodies(name, 1, count, encoding="base64", texts=texts)


def soak(report, what, count, warm_up, seed, *words, environment=None):
    load.build("serving_load", "muster")
    file = bodies(f"soak-{what}.bodies", 20000, seed)
    # A cache that the texts fill many times over: it throws out all the time, and nearly all are computed.
    with serving(MODEL, "--devices", "2xcpu", "--cache-size", "4MiB", *words, name=f"soak-{what}", environment=environment) as server:
        pids = [server.process.pid, *children_of(server.process.pid, "zero_worker" if environment else "muster-worker")]
        samples, done = [], 0
        while done < count + warm_up:
            part = load.run(server, file, "--closed", "--requests", min(warm_up, count + warm_up - done), seconds=3600, connections=64)
            assert set(part["statuses"]) == {"200"}, part["statuses"]
            done += part["statuses"]["200"]
            samples.append({"requests": done, "rss_kib": [rss_kib(pid) for pid in pids], "descriptors": [descriptors(pid) for pid in pids]})
        computed = sum(int(float(count)) for count in re.findall(r'cache_lookups_total\{[^}]*result="miss"[^}]*\} (\S+)',
                                                                 server.get("/metrics")[1].decode()))
        server.stop()
    report.add(at_least(f"{what}: texts that a worker computed, of {done:,}", computed / done, 0.9, 3))
    first, last = samples[0], samples[-1]
    growth = max((b - a) / a * 100 for a, b in zip(first["rss_kib"], last["rss_kib"]))
    report.raw[what] = samples
    report.add(at_most(f"{what}: growth of memory over {last['requests'] - first['requests']:,} requests", growth, GROWTH_PERCENT, 2, " %"))
    report.add(holds(f"{what}: descriptors", first["descriptors"] == last["descriptors"],
                     f"{first['descriptors']} and {last['descriptors']}", "as many as before"))


def measure(report, arguments):
    soak(report, "zero worker", 1_000_000, 100_000, arguments.seed, "--worker-program", ZERO_WORKER,
         environment={"ZERO_WORKER": "dim=384"})
    soak(report, "real worker", 50_000, 10_000, arguments.seed + 1)
