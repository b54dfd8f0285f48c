"""Where a GPU is to be had: the tests labelled gpu, parity, and the speed against sentence-transformers."""

import json
import subprocess

import numpy

import machine
import run_interleaved
import texts
import vectors
from programs import MODEL, PEER_PYTHON, PEERS, ROOT, embed, scratch
from report import Check, PASS, at_least, at_most, holds

TITLE = "On a GPU: the tests labelled gpu, parity, and the ratio to sentence-transformers"
IS_TIMED = True


def tests(report):
    done = subprocess.run(["ctest", "--test-dir", ROOT / "build-test" / "plain", "-L", "gpu", "--no-tests=error"],
                          capture_output=True, text=True)
    report.raw["ctest"] = done.stdout[-4000:]
    report.add(holds("the tests labelled gpu", done.returncode == 0, done.stdout.strip().splitlines()[-1], "passed"))


def parity(report):
    source = texts.write_lines("parity.txt", texts.texts_of_all_kinds())
    theirs = scratch("parity-theirs.npy")
    subprocess.run([PEER_PYTHON, PEERS / "st_encode.py", "once", MODEL, source, theirs, "fp32"], check=True)
    for precision, worst, mean in (("fp32", 0.999999, 0.999999), ("bf16", 0.999, 0.9995)):
        out = scratch(f"gpu-{precision}.npy")
        embed(source, out, "--devices", "cuda:0", "--precision", precision)
        ours = vectors.load(out)
        if precision == "fp32":
            difference = float(numpy.abs(ours - vectors.load(theirs)).max())
            report.add(at_most("fp32, largest difference of a component (x 1e-6)", difference * 1e6, 10))
        cosine = vectors.cosines(ours, vectors.load(theirs))
        report.add(at_least(f"{precision} cosine, the worst", float(cosine.min()), worst, digits=7))
        report.add(at_least(f"{precision} cosine, the mean", float(cosine.mean()), mean, digits=7))


def peer_on_gpu(source):
    done = subprocess.run([PEER_PYTHON, PEERS / "st_gpu.py", MODEL, source], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def speed(report, arguments):
    source = texts.write_lines("gpu-corpus.txt", texts.corpus_lines())
    samples = run_interleaved.interleave({
        "muster": lambda: {"wall_s": embed(source, scratch("gpu.npy"), "--devices", "cuda:0", "--precision", "bf16")["wall_seconds"]},
        "peer": lambda: peer_on_gpu(source),
    }, arguments.rounds)
    report.raw["samples"] = samples
    ratio = run_interleaved.ratio(samples, "peer", "muster", "wall_s")
    report.add(Check("bf16 over its bf16, whole command against its encode alone", "reported", f"{ratio:.2f}x", PASS))


def skip_reason():
    return None if machine.has_gpu() else "there is no GPU on this machine (no NVIDIA driver)"


def measure(report, arguments):
    tests(report)
    parity(report)
    speed(report, arguments)
