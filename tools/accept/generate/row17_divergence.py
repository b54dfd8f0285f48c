"""How far the next tokens of each precision, and of keys and values in 8 bits, are from fp32's, beside llama.cpp's from its own; and what
`--precision auto` takes."""

import json
import os
import shutil
import subprocess

from generate import replies
from generate.reference import SMOLLM2, build, llama_cpp, missing
from programs import MUSTER, ROOT, scratch
from report import holds

TITLE = "KL to fp32: bf16, own bits, int8 and an 8-bit cache, beside llama.cpp's of the same file and of Q8_0; auto measures once"
IS_TIMED = False

IDS_OF_TEXT, IDS_LEAST = 96, 8
KL_MOST = 0.01  # of what auto takes, less than any quantisation to five bits costs: src/jobs/decoder_trial.h has its source

skip_reason = missing


def write_ids(path):
    """A text a line: the beginnings of the openings and of the shipped texts. How many positions."""
    source = scratch("generate-divergence.jsonl")
    chosen = [*replies.OPENINGS, *(ROOT / "data" / "precision_texts.txt").read_text().splitlines()]
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in chosen))
    done = subprocess.run([MUSTER, "tokenize", SMOLLM2, source], capture_output=True, text=True, check=True)
    texts = [json.loads(line)["ids"][:IDS_OF_TEXT] for line in done.stdout.split("\n")[:-1]]
    texts = [ids for ids in texts if len(ids) >= IDS_LEAST]
    path.write_text("".join(" ".join(map(str, ids)) + "\n" for ids in texts))
    return sum(map(len, texts))


def compare_divergence(report):
    path, folder = scratch("generate-divergence.ids"), scratch("generate-divergence")
    positions = write_ids(path)
    ours = json.loads(subprocess.run([build("decode_divergence"), SMOLLM2, path], capture_output=True, text=True, check=True).stdout)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        theirs = json.loads(llama_cpp("divergence", SMOLLM2, path, folder))
    finally:
        shutil.rmtree(folder)
    report.raw["divergence"] = {"positions": positions, "ours": ours, "llama.cpp": theirs}
    report.add(holds("positions that both have read", ours["positions"] == theirs["positions"] == positions, f"{positions:,}"))
    report.add(holds("bf16", ours["bf16"] <= KL_MOST, f"{ours['bf16']:.6f}", f"<= {KL_MOST}"))
    # A scale for each 64 values, theirs for each 32: what theirs costs is shown and is no limit.
    report.add(holds("fp32 with keys and values in 8 bits", ours["kv_int8"] <= KL_MOST, f"{ours['kv_int8']:.6f}", f"<= {KL_MOST}"))
    print(f"  note  llama.cpp's float32 with keys and values in Q8_0: {theirs['kv_q8_0']:.6f}")
    for what, mine, other in (("own bits against llama.cpp with the file", "own", "own"), ("int8 against llama.cpp's Q8_0", "int8", "q8_0")):
        report.add(holds(what, ours[mine] <= theirs[other], f"{ours[mine]:.6f}", f"<= {theirs[other]:.6f}"))


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
