"""How far the next tokens of each precision, and of keys and values in 8 bits, are from fp32's, beside llama.cpp's from its own, with an
interval of the difference; and what `--precision auto` takes."""

import json
import os
import shutil
import subprocess

import numpy

from generate import replies
from generate.reference import SMOLLM2, build, llama_cpp, missing
from programs import MUSTER, ROOT, scratch
from report import MISS, Check, at_least, at_most, holds

TITLE = "KL to fp32: bf16, own bits, int8 and an 8-bit cache, beside llama.cpp's of the same file and of Q8_0; auto measures once"
IS_TIMED = False

IDS_OF_TEXT, IDS_LEAST = 96, 8
# Sentences in several languages, and then texts of so many lines of the shipped package descriptions, evenly spread.
LINES_OF_TEXT, PACKAGE_TEXTS = 8, 420
POSITIONS_LEAST = 30_000
RESAMPLED, INTERVAL_PERCENT = 10_000, 95
HALF_WIDTH_MOST = 0.1  # of the interval, as a share of llama.cpp's divergence: a wider one would pass whatever is measured
LIMIT_S = 1500
KL_MOST = 0.01  # of what auto takes, less than any quantisation to five bits costs: src/jobs/decoder_trial.h has its source

skip_reason = missing


def chosen_texts():
    """The texts, and how many of the first have keys and values in 8 bits, too: they are read once more for that, in fp32."""
    sentences = [*replies.OPENINGS, *(ROOT / "data" / "precision_texts.txt").read_text(encoding="utf-8").splitlines()]
    lines = (ROOT / "data" / "sample_texts.txt").read_text(encoding="utf-8").splitlines()
    groups = ["\n".join(lines[i:i + LINES_OF_TEXT]) for i in range(0, len(lines) - LINES_OF_TEXT + 1, LINES_OF_TEXT)]
    return [*sentences, *(groups[i * len(groups) // PACKAGE_TEXTS] for i in range(PACKAGE_TEXTS))], len(sentences)


def write_ids(path):
    """A text a line, none of them whole. How many positions they have, and of how many texts the cache is compared."""
    source = scratch("generate-divergence.jsonl")
    chosen, cached = chosen_texts()
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in chosen), encoding="utf-8")
    done = subprocess.run([MUSTER, "tokenize", SMOLLM2, source], capture_output=True, text=True, check=True)
    texts = [json.loads(line)["ids"][:IDS_OF_TEXT] for line in done.stdout.split("\n")[:-1]]
    cached = sum(len(ids) >= IDS_LEAST for ids in texts[:cached])
    texts = [ids for ids in texts if len(ids) >= IDS_LEAST]
    path.write_text("".join(" ".join(map(str, ids)) + "\n" for ids in texts))
    return sum(map(len, texts)), cached


def measure_ours(path, cached):
    done = subprocess.run([build("decode_divergence"), SMOLLM2, path, str(cached)], capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"decode_divergence ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def measure_theirs(path, cached):
    folder = scratch("generate-divergence")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        return json.loads(llama_cpp("divergence", SMOLLM2, path, folder, cached))
    finally:
        shutil.rmtree(folder)


def interval_of(mine, theirs, lengths):
    """The difference of the means over positions, and where it lies in so many of a hundred draws of as many texts: the positions of a
    text are no draws of their own. Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, section 13.3."""
    differences, counts = numpy.subtract(mine, theirs), numpy.array(lengths)
    drawn = numpy.random.default_rng(1).integers(0, len(counts), (RESAMPLED, len(counts)))
    means = differences[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    tail = (100 - INTERVAL_PERCENT) / 2
    low, high = numpy.percentile(means, (tail, 100 - tail))
    return float(differences.sum() / counts.sum()), float(low), float(high)


def add_comparison(report, what, ours, theirs, mine, other):
    """Not worse, or by no more than other texts might have changed."""
    difference, low, high = interval_of(ours["sums"][mine], theirs["sums"][other], ours["lengths"])
    report.raw.setdefault("intervals", {})[what] = [low, difference, high]
    report.add(holds(what, low <= 0, f"{ours[mine]:.6f} against {theirs[other]:.6f}: {difference:+.6f}, {INTERVAL_PERCENT} % of the draws of "
                     f"{len(ours['lengths'])} texts in [{low:+.6f}, {high:+.6f}]", "the interval begins at 0 or below"))
    report.add(at_most(f"{what}: half the interval, of llama.cpp's", (high - low) / 2 / theirs[other], HALF_WIDTH_MOST, 3))


def compare_divergence(report):
    path = scratch("generate-divergence.ids")
    positions, cached = write_ids(path)
    ours = measure_ours(path, cached)
    report.raw["divergence"] = {"positions": positions, "cached_texts": cached, "ours": ours}
    report.add(holds("positions that ours has read", ours["positions"] == positions, f"{ours['positions']:,}", f"{positions:,}"))
    report.add(at_least("of these", positions, POSITIONS_LEAST, digits=0))
    report.add(holds("bf16", ours["bf16"] <= KL_MOST, f"{ours['bf16']:.6f}", f"<= {KL_MOST}"))
    report.add(holds(f"fp32 with keys and values in 8 bits, the first {cached} texts", ours["kv_int8"] <= KL_MOST, f"{ours['kv_int8']:.6f}",
                     f"<= {KL_MOST}"))
    try:
        theirs = measure_theirs(path, cached)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        report.add(Check("llama.cpp's divergence", "measured", str(error)[-300:], MISS))
        return
    report.raw["divergence"]["llama.cpp"] = theirs
    report.add(holds("texts that both have read", ours["lengths"] == theirs["lengths"], f"{len(theirs['lengths'])}", f"{len(ours['lengths'])}"))
    # A scale for each 64 values, theirs for each 32: what theirs costs is shown and is no limit.
    print(f"  note  llama.cpp's float32 with keys and values in Q8_0: {theirs['kv_q8_0']:.6f}", flush=True)
    for what, mine, other in (("own bits against llama.cpp with the file", "own", "own"), ("int8 against llama.cpp's Q8_0", "int8", "q8_0")):
        add_comparison(report, what, ours, theirs, mine, other)


def verdicts(folder):
    return sorted(os.listdir(folder / "verdicts")) if (folder / "verdicts").exists() else []


def check_auto(report):
    folder = scratch("generate-auto-cache")
    shutil.rmtree(folder, ignore_errors=True)
    options = ("--max-tokens", 2, "--precision", "auto", "--cache-dir", folder)
    made = [replies.generate(replies.OPENINGS[0], *options, cores=2) for _ in range(2)]
    report.raw["auto"] = made
    reasons = [each.get("precision_reason", "") for each in made]
    report.add(holds("auto says what it took and why", reasons[0].startswith("measured: ") and "KL to fp32" in reasons[0],
                     f"{made[0]['precision']}: {reasons[0]}", "measured, with each KL"))
    same = reasons[0] == reasons[1] and made[0]["precision"] == made[1]["precision"] and len(verdicts(folder)) == 1
    report.add(holds("the second start takes what was kept", same, "the same figures" if same else f"{reasons[1]}", "the same figures"))


def measure(report, arguments):
    compare_divergence(report)
    check_auto(report)
