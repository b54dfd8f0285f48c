"""The same texts in another order, in other batches, with other lane counts, on one or two devices."""

import random

import numpy

import texts
import vectors
from programs import devices, embed, scratch
from report import holds

TITLE = "Another order, other batches, other lane counts, one or two devices: the same bits"
IS_TIMED = False

PACKAGE_COUNT = 2000
VARIANTS = {
    "two devices": ("--devices", devices(2)),
    "one device, one lane": ("--devices", devices(1), "--cores-per-device", "1"),
    "one device, two lanes": ("--devices", devices(1), "--cores-per-device", "2"),
    "batches of 256 tokens": ("--devices", devices(2), "--batch-tokens", "256"),
    "batches of 16,384 tokens": ("--devices", devices(1), "--batch-tokens", "16384"),
}


def measure(report, arguments):
    generator = random.Random(arguments.seed)
    print(f"  seed  {arguments.seed}")
    report.raw["seed"] = arguments.seed
    lines = texts.texts_of_all_kinds(500) + texts.corpus_lines()[:PACKAGE_COUNT]
    order = list(range(len(lines)))
    generator.shuffle(order)
    straight = texts.write_lines("bits.txt", lines)
    shuffled = texts.write_lines("bits-shuffled.txt", [lines[i] for i in order])
    for precision in ("fp32", "bf16"):
        out = scratch(f"bits-{precision}.npy")
        embed(straight, out, "--precision", precision, "--devices", devices(1))
        reference = vectors.load(out)
        for name, options in VARIANTS.items():
            other = scratch(f"bits-{precision}-other.npy")
            embed(straight, other, "--precision", precision, *options)
            count = vectors.differing_rows(vectors.load(other), reference)
            report.add(holds(f"{precision}, {name}", count == 0, f"{count} of {len(lines)} rows differ", "0"))
        other = scratch(f"bits-{precision}-other.npy")
        embed(shuffled, other, "--precision", precision, "--devices", devices(2))
        count = vectors.differing_rows(vectors.load(other), numpy.asarray(reference)[order])
        report.add(holds(f"{precision}, random order", count == 0, f"{count} of {len(lines)} rows differ", "0"))
