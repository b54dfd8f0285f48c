"""Today's programs beside an earlier build, in turn: what starting, serving, embedding and the engine took before and take
now. The figures of rows 2, 3, 4 and 16 of serve and 9 to 12 of spine that concern muster alone."""

import contextlib
import functools
import os
import pathlib
import statistics
import subprocess
import time

import engine_bench
import programs
import run_interleaved
import texts
from programs import MODEL, embed, scratch
from report import at_least, at_most, holds
from serve import load, row03_throughput, row04_cache_hits
from serve.row02_latency import RATE, TEXT
from serve.row16_peers import memory_of
from serve.running import serving

# Build tree of the earlier commit, made by ./quickstart --build-only in a clone of it. Popped: muster warns of it.
BASELINE = os.environ.pop("MUSTER_BASELINE", None)
# How much slower counts as slower: single pairs on a shared two-core machine waver by this much.
TOLERANCE = 0.05
# Where less is better, by unit: what is allowed beside TOLERANCE, because the clock or the machine wavers so much.
LESS_IS_BETTER = {" ms": 0.1, " s": 0.05, " MB": 2.0}
LATENCY_STARTS, LATENCY_SECONDS = 5, 4
HIT_TURNS, HIT_SECONDS = 6, 2
HELP_STARTS = 100  # 20 told two builds 8 % apart whose medians over 300 starts are within 0.4 %
ENGINE_SHAPE, ENGINE_LOOPS = "32x128", 4  # loops of half a second each


def sides():
    return {"before": pathlib.Path(BASELINE).resolve() / "bin" / "muster", "now": programs.MUSTER}


def tree_of(muster):
    """The build tree of the program BUILD/bin/muster."""
    return muster.parent.parent


def engine(muster):
    """Tokens per second of the engine alone on one core, in fp32."""
    bench = engine_bench.serve("fp32", {min(os.sched_getaffinity(0))}, tree_of(muster))
    answers = [bench.ask(ENGINE_SHAPE) for _ in range(ENGINE_LOOPS + 1)][1:]
    bench.close()
    return statistics.median(answer["tokens"] / answer["wall_seconds"] for answer in answers)


def one_query(muster, bodies):
    """Medians over several starts, since one server answers lone queries faster than the next: latencies, and the seconds
    from the start until it was ready for them."""
    starts = []
    for _ in range(LATENCY_STARTS):
        begin = time.monotonic()
        with serving(MODEL, "--devices", "1xcpu", "--cores-per-device", "1", "--no-cache-enabled", name="lone",
                     muster=muster) as server:
            ready_s = time.monotonic() - begin
            load.run(server, bodies, "--rate", 20, seconds=1, connections=1)
            found = load.run(server, bodies, "--rate", RATE, "--arrivals", "constant", seconds=LATENCY_SECONDS, connections=4)
            starts.append({"p50_ms": found["p50_ms"], "p99_ms": found["p99_ms"], "ready_s": ready_s})
    return {name: statistics.median(start[name] for start in starts) for name in starts[0]}


def throughput(muster, what, per_request, connections, file):
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", name="bulk", muster=muster) as server:
        row03_throughput.wrk(server, file, connections)  # warming up
        figures = {f"{what}, texts/s": row03_throughput.wrk(server, file, connections) * per_request}
        if what.startswith("float"):
            figures["all processes of the server MB"] = memory_of(server.process.pid)["pss_mb"]
        return figures


def hits(asked):
    """Figures of both builds, whose servers stand side by side and take turns of two seconds: over the ten that a build had
    before, one server was seen between 57,000 and 91,000 requests a second."""
    bodies = {e: load.write_bodies(f"base-{e}.bodies", 1, len(asked), encoding=e, texts=asked) for e in ("float", "base64")}
    with contextlib.ExitStack() as stack:
        servers = {name: stack.enter_context(serving(MODEL, "--devices", "2xcpu", name=f"hits-{name}", muster=muster))
                   for name, muster in sides().items()}
        for server in servers.values():
            row04_cache_hits.ask(server, asked, "base64")
        figures = {name: {} for name in servers}
        for encoding, file in bodies.items():
            turns = run_interleaved.interleave(
                {name: functools.partial(row04_cache_hits.wrk, server, file, HIT_SECONDS) for name, server in servers.items()}, HIT_TURNS)
            for name, found in turns.items():
                figures[name][f"cache hits, {encoding}, requests/s"] = run_interleaved.median(found, "per_second")
    return figures


def corpus(muster, devices):
    report = embed(texts.sample_file(), scratch("base.npy"), "--devices", devices, "--cores-per-device", "1", muster=muster)
    return {f"embed {devices}, texts/s": report["text_count"] / report["wall_seconds"],
            f"embed {devices}, first vector s": report["first_vector_seconds"]}


def help_ms(muster):
    """Milliseconds of a start: the median, since a mean is that of the few that something came between."""
    times = []
    for _ in range(HELP_STARTS):
        begin = time.monotonic()
        subprocess.run([muster, "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append((time.monotonic() - begin) * 1e3)
    return statistics.median(times)


def lone(muster, bodies):
    found = one_query(muster, bodies)
    return {"lone query p50 ms": found["p50_ms"], "lone query p99 ms": found["p99_ms"], "serve until ready s": found["ready_s"]}


def parts():
    """What is measured of one build at a time: functions of its program, half a minute each at most."""
    lines = texts.sample_file().read_text(encoding="utf-8").splitlines()
    bodies = load.write_bodies("base-one.bodies", 1, 1, texts=[TEXT])
    cases = []
    for i, (what, per_request, encoding, connections, _) in enumerate(row03_throughput.CASES):
        file = load.write_bodies(f"base-{i}.bodies", per_request, len(lines) // per_request, encoding=encoding, texts=lines)
        cases.append(functools.partial(throughput, what=what, per_request=per_request, connections=connections, file=file))
    return [functools.partial(lone, bodies=bodies), lambda m: {"--help ms": help_ms(m)}, lambda m: {"engine alone, tokens/s": engine(m)},
            *cases, functools.partial(corpus, devices="1xcpu"), functools.partial(corpus, devices="2xcpu")]


def pairs(rounds):
    """Figures of each build, a dict a round. The builds take turns part by part: a machine that others use, too, has been seen to
    become a quarter slower within minutes."""
    samples = {name: [{} for _ in range(rounds)] for name in sides()}
    for part in parts():
        found = run_interleaved.interleave({name: functools.partial(part, muster) for name, muster in sides().items()}, rounds)
        for name, rounds_of_part in found.items():
            for figures, more in zip(samples[name], rounds_of_part):
                figures |= more
    asked = row04_cache_hits.texts_of_16_tokens(1000)
    for index in range(rounds):
        for name, figures in hits(asked).items():
            samples[name][index] |= figures
    return samples


def measure(report, arguments):
    """Adds a check for each figure, by the median of the rounds' ratios; missed without a build to compare with."""
    if not BASELINE:
        return report.add(holds("beside an earlier build", False, "MUSTER_BASELINE names no build tree"))
    samples = pairs(arguments.rounds)
    report.raw["beside_baseline"] = samples
    for what in samples["now"][0]:
        before = statistics.median(s[what] for s in samples["before"])
        ratio = statistics.median(n[what] / b[what] for n, b in zip(samples["now"], samples["before"]))
        slack = next((slack for unit, slack in LESS_IS_BETTER.items() if what.endswith(unit)), None)
        if slack is None:
            report.add(at_least(f"{what}: {before:.0f} before, now of it", ratio, 1 - TOLERANCE, 3))
        else:
            report.add(at_most(f"{what}: {before:.3f} before, now", before * ratio, round(before * (1 + TOLERANCE) + slack, 3), 3))
