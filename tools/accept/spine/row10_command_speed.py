"""The whole command against what sentence-transformers makes of both cores."""

import json

import machine
import run_interleaved
import texts
from programs import CORPUS, MODEL, PEER_PYTHON, PEERS, embed, scratch
from report import at_least
from server import LineServer

TITLE = "The whole command, 2xcpu, against sentence-transformers' best and its two-process pool"
IS_TIMED = True

BATCHES = (32, 128, 256)
CHOICE_COUNT = 2000  # texts on which the batch size is chosen
FP32_RATIO_MIN = 1.6
AUTO_RATIO_MIN = {True: 3.0, False: 1.5}  # with AMX, without
POOL_RATIO_MIN = 2.0


def muster(source, precision):
    result = embed(source, scratch(f"speed-{precision}.npy"), "--devices", "2xcpu", "--precision", precision)
    return {"wall_s": result["wall_seconds"], "cpu_s": result["parent_cpu_seconds"] + result["worker_cpu_seconds"],
            "report": result}


def best_batch(peer, precision, pool, report):
    """The batch size that serves the peer best, by one run each over a part of the texts."""
    walls = {}
    for batch in BATCHES:
        walls[batch] = peer.ask(request(precision, batch, pool, CHOICE_COUNT))["wall_s"]
    report.raw.setdefault("batch_choice", {})[f"{'pool ' if pool else ''}{precision}"] = walls
    return min(walls, key=walls.get)


def request(precision, batch, pool=False, count=None):
    return json.dumps({"precision": precision, "batch": batch, "pool": pool, "count": count})


def against_one_process(report, arguments):
    """On a sample: the peer takes minutes a round for all of it in fp32, and the ratios are far from the line."""
    source = texts.sample_file()
    with LineServer([PEER_PYTHON, PEERS / "st_encode.py", "serve", MODEL, source]) as peer:
        contenders = {"muster fp32": lambda: muster(source, "fp32"), "muster auto": lambda: muster(source, "auto")}
        for precision in ("fp32", "bf16"):
            batch = best_batch(peer, precision, False, report)
            contenders[f"peer {precision}"] = lambda r=request(precision, batch): peer.ask(r)
        samples = run_interleaved.interleave(contenders, arguments.rounds)
    report.raw["samples"] = samples
    show(samples)
    best = min(("peer fp32", "peer bf16"), key=lambda name: run_interleaved.median(samples[name], "wall_s"))
    report.add(at_least("fp32 over its fp32", ratio(samples, "muster fp32", "peer fp32"), FP32_RATIO_MIN, unit="x"))
    report.add(at_least(f"auto over its best ({best[5:]})", ratio(samples, "muster auto", best),
                        AUTO_RATIO_MIN[machine.has_amx()], unit="x"))
    return best[5:]


def against_pool(report, arguments, precision):
    """On the whole corpus: the ratio is near the line, and the command's start counts in a sample."""
    with LineServer([PEER_PYTHON, PEERS / "st_encode.py", "serve", MODEL, CORPUS]) as peer:
        batch = best_batch(peer, precision, True, report)
        samples = run_interleaved.interleave({"muster auto": lambda: muster(CORPUS, "auto"),
                                              "peer pool": lambda: peer.ask(request(precision, batch, True))},
                                             arguments.rounds)
    report.raw["corpus_samples"] = samples
    show(samples)
    report.add(at_least(f"auto over its pool ({precision}), whole corpus", ratio(samples, "muster auto", "peer pool"),
                        POOL_RATIO_MIN, unit="x"))


def show(samples):
    print("\n".join("  note  " + line for line in run_interleaved.summary(samples).splitlines()))


def ratio(samples, ours, theirs):
    return run_interleaved.ratio(samples, theirs, ours, "wall_s")


def measure(report, arguments):
    print(f"  note  against one process on {texts.SAMPLE_COUNT} texts spread evenly over the corpus, against the pool on "
          "all of it; the peer's clock starts after its model is loaded and its pool is up, muster's with the command")
    muster(texts.sample_file(), "auto")  # the precision verdict is cached from here on
    against_pool(report, arguments, against_one_process(report, arguments))
