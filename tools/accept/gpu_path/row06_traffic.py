"""What travels to a GPU and from it, by the stand-in's own counters: two runs of `embed`, of one text and of many."""

import json
import os
import struct
import subprocess

import texts
from gpu_path.standin import BIN, skip_reason  # noqa: F401  a row is asked for it
from programs import MODEL, embed_command, remove_output, scratch
from report import at_most, holds

TITLE = "Share of padding on the corpus; bytes from the device to the host for each text"
IS_TIMED = False

TEXTS = 6000  # of the corpus, evenly spread: the stand-in computes a hundredth of what a GPU does
PADDING_MAX = 0.10
DIM = 384  # of all-MiniLM-L6-v2
# Source: src/spec/standin_device.h, StandinReport: 13 numbers of 64 bits.
TO_DEVICE, TO_HOST = 6, 7


def run(report, lines):
    """(tokens, bytes to the device, bytes to the host) of a whole run, loading included."""
    reports = scratch("traffic.reports")
    reports.mkdir(exist_ok=True)
    counters = reports / "standin-0"
    counters.write_bytes(b"")
    source, out = scratch("traffic.txt"), scratch("traffic.npy")
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    remove_output(out)
    done = subprocess.run(embed_command(source, out, "--devices", "1xstandin", "--precision", "fp32", "--json", "--quiet",
                                        muster=BIN / "muster"),
                          capture_output=True, text=True, env={**os.environ, "STANDIN_REPORTS": str(reports)})
    remove_output(out)
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    numbers = struct.unpack("<13Q", counters.read_bytes()[:104])
    report.raw.setdefault("runs", []).append({"texts": len(lines), "report": json.loads(done.stdout), "counters": numbers})
    return json.loads(done.stdout)["token_count"], numbers[TO_DEVICE], numbers[TO_HOST]


def measure(report, arguments):
    lines = [line for line in texts.corpus_lines() if line.strip()]
    lines = lines[::max(1, len(lines) // TEXTS)][:TEXTS]
    one, many = run(report, lines[:1]), run(report, lines)
    tokens, to_device, to_host = (after - before for after, before in zip(many, one))
    count = len(lines) - 1
    # A pass is sent as two numbers for each row and one for where each text begins, of 32 bits; those of texts that are
    # padding count as rows here, so this is the most that it can be.
    rows = (to_device / 4 - count) / 2
    report.add(at_most(f"padding, of {count + 1:,} texts with {tokens:,} tokens", 1 - tokens / rows, PADDING_MAX, 4))
    report.add(holds("bytes to the host for each text", to_host == count * DIM * 4, f"{to_host / count:.1f}", str(DIM * 4)))
