"""A device whose memory others take while a server uses it, and give back."""

import json
import re
import time

import numpy

from gpu_path.standin import BIN, run_tests, skip_reason  # noqa: F401  a row is asked for it
from programs import ROOT, scratch
from report import holds
from serve.running import serving
from texts import corpus_lines

TITLE = "Memory for 1/2, 1/4 and 1/10 of what a batch needs: right vectors, and whole batches again"
IS_TIMED = False

MODEL = ROOT / "tests" / "models" / "tiny"
MEMORY = 1 << 30  # of a stand-in: spec/standin_device.h
TEXTS = 2000
PARTS, BACK_S = (2, 4, 10), 60
BUDGET = re.compile(r"the GPU's memory is .*: it computes (\d+) tokens at once, not (\d+)")  # src/worker/memory_notices.h


def device(server):
    return json.loads(server.get("/v1/devices")[1])["devices"][0]


def budgets(server):
    """What the log says of tokens at once, in its order: (from then on, before)."""
    return [(int(now), int(before)) for now, before in BUDGET.findall(server.log.read_text(errors="replace"))]


def ask(server, lines):
    return numpy.array([row for at in range(0, len(lines), 500) for row in server.embed(lines[at:at + 500], timeout_s=120)])


def with_memory_for(report, server, held, lines, expected, before, part):
    """Others take what leaves `needed // part` beside the weights, and give it back."""
    needed, weights = before["activation_peak_bytes"], before["models"][0]["weights_bytes"]
    held.write_text(str(MEMORY - weights - needed // part))
    same = numpy.array_equal(ask(server, lines), expected)
    short = budgets(server)
    report.raw[f"1/{part}"] = {"device": device(server), "budgets": short}
    report.add(holds(f"1/{part} of {needed:,} bytes: vectors", same, "the same bits" if same else "others", "the same bits"))
    report.add(holds(f"1/{part}: the budget is printed", bool(short) and short[-1][0] < short[0][1],
                     f"{short[-1][0]} tokens at once, not {short[0][1]}" if short else "no", "yes"))
    held.write_text("0")
    if not short:
        return
    whole, end = short[0][1], time.monotonic() + BACK_S
    now, last = device(server), short[-1][0]
    while time.monotonic() < end and not (last == whole and now["batch_tokens_limit"] == before["batch_tokens_limit"]):
        ask(server, lines)
        now, last = device(server), budgets(server)[-1][0]
    report.add(holds(f"1/{part}, memory is back: tokens in a batch", now["batch_tokens_limit"] == before["batch_tokens_limit"],
                     str(now["batch_tokens_limit"]), str(before["batch_tokens_limit"])))
    report.add(holds(f"1/{part}, memory is back: tokens at once", last == whole, str(last), str(whole)))


def measure(report, arguments):
    run_tests(report, "engine_test", {
        "GpuTest.WithLittleMemoryABatchIsComputedInPartsAndGrowsAgain": "passes in the engine: the same bits, and whole ones again",
    }, {"GPU_TEST_DEVICE": "standin"})
    lines = [line for line in corpus_lines() if line.strip()][:TEXTS]
    options = ("--devices", "1xstandin", "--no-cache-enabled", "--precision", "fp32")
    with serving(MODEL, *options, muster=BIN / "muster", name="memory") as server:
        expected = ask(server, lines)
        before = report.raw["before"] = device(server)
    held = scratch("memory-held")
    words = json.dumps({"standin:0": {"held_file": str(held)}})
    for part in PARTS:  # each with a new worker: nobody takes the memory that one keeps for its passes
        held.write_text("0")
        with serving(MODEL, *options, muster=BIN / "muster", environment={"STANDIN": words}, name="memory") as server:
            with_memory_for(report, server, held, lines, expected, before, part)
