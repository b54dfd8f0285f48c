"""The real MiniLM against sentence-transformers on texts of all lengths and scripts."""

import subprocess

import numpy

import texts
import vectors
from programs import KIND, MODEL, PEER_PYTHON, PEERS, devices, embed, scratch
from report import at_least, at_most, holds

TITLE = "MiniLM against sentence-transformers 6.0.1 fp32 on 1,000 texts of all lengths and scripts"
IS_TIMED = False

TEXT_COUNT = 1000
ON = () if KIND == "cpu" else ("--devices", devices(2))


def measure(report, arguments):
    source = texts.write_lines("parity.txt", texts.texts_of_all_kinds(TEXT_COUNT))
    theirs_file = scratch("parity-theirs.npy")
    subprocess.run([PEER_PYTHON, PEERS / "st_encode.py", "once", MODEL, source, theirs_file, "fp32"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    theirs = vectors.load(theirs_file)

    report.raw["fp32"] = embed(source, scratch("parity-fp32.npy"), "--precision", "fp32", *ON)
    ours = vectors.load(scratch("parity-fp32.npy"))
    report.add(holds("rows", ours.shape == theirs.shape, str(ours.shape), str(theirs.shape)))
    difference = float(numpy.abs(ours - theirs).max())
    report.add(at_most("fp32, largest difference of a component (x 1e-6)", difference * 1e6, 10))
    cosine = vectors.cosines(ours, theirs)
    report.add(at_least("fp32 cosine, the worst", float(cosine.min()), 0.999999, digits=8))

    report.raw["bf16"] = embed(source, scratch("parity-bf16.npy"), "--precision", "bf16", *ON)
    cosine = vectors.cosines(vectors.load(scratch("parity-bf16.npy")), theirs)
    report.raw["bf16_cosines_sorted"] = sorted(map(float, cosine))[:20]
    report.add(at_least("bf16 cosine, the worst", float(cosine.min()), 0.999, digits=6))
    report.add(at_least("bf16 cosine, the mean", float(cosine.mean()), 0.9995, digits=6))
