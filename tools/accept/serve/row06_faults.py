"""Workers that hang, slow down, lie, cannot start or run out of memory, beside one that is well."""

import contextlib
import json
import signal
import time

from programs import KIND, LIFE_MODEL, devices, kill, scratch
from report import at_most, holds
from serve.running import serving
from serve.watching import FAULTY_WORKER, SEEN_S, Watch, asking, right_answers, texts

TITLE = "SIGSTOP; 10x slower than its calibration; a liar; crash at start; out of memory"
IS_TIMED = True

IN_FLIGHT, TEXTS = 64, 1000
US_PER_TOKEN = 50       # of every device; a batch of all texts in flight takes less than a tenth of a second
KERNEL_US = 500         # no less, of a stand-in: what is ten times slower has to be what a batch takes
LIMIT_S = 1.0           # max(1 s, 5x predicted batch time)
ILL_AFTER_S, WELL_AFTER_S = 8, 20
BACK_S = 45             # after it is well; a worker that crashed waits for its back-off
WELL, ILL = f"{KIND}:0", f"{KIND}:1"
MEMORY = 1 << 30        # of a stand-in: spec/standin_device.h


def skip_reason():
    missing = KIND == "cpu" and not FAULTY_WORKER.exists()
    return "muster-worker-faulty is not built (./test builds it)" if missing else None


@contextlib.contextmanager
def faulty_server(name, **faults):
    """A server whose second device has these faults; yields it and the file of that device's starts."""
    state = scratch(f"faulty-{name}.state")
    state.unlink(missing_ok=True)
    if KIND == "cpu":
        words = {WELL: {"batch_us_per_token": US_PER_TOKEN},
                 ILL: {"batch_us_per_token": US_PER_TOKEN, "state_file": str(state), **faults}}
        program, environment = ("--worker-program", FAULTY_WORKER), {"FAULTY_WORKER": json.dumps(words)}
    else:
        words = {"all": {"kernel_us": KERNEL_US}, ILL: {"state_file": str(state), **faults}}
        program, environment = (), {"STANDIN": json.dumps(words)}
    with serving(LIFE_MODEL, "--devices", devices(2), "--no-cache-enabled", "--queue-budget", "60s", "--canary-interval", "500ms",
                 *program, environment=environment, name=f"faulty-{name}") as server:
        yield server, state


def first_start(state):
    return float(state.read_text().split()[1])


def report_case(report, what, outcome, quarantined_s, limit_s, back_s, devices, checks_rows=True):
    failed = outcome.get("failed_count")
    report.raw[what] = {"outcome": outcome, "quarantined_s": quarantined_s, "limit_s": limit_s, "back_s": back_s, "devices": devices}
    if limit_s is not None:
        report.add(at_most(f"{what}: quarantined after", 99 if quarantined_s is None else quarantined_s, limit_s + SEEN_S, 2, " s"))
    wrong = f", {outcome.get('wrong')} wrong" if checks_rows else ""
    report.add(holds(f"{what}: requests that failed", failed == 0 and (not checks_rows or outcome.get("wrong") == 0),
                     f"{failed} of {outcome.get('right', 0):,}{wrong}; {outcome.get('failed', [])[:2]}", "0"))
    report.add(holds(f"{what}: back when well", back_s is not None, f"{back_s:.1f} s" if back_s is not None else devices[ILL]["state"]))


def stopped(report, lines):
    with faulty_server("stopped") as (server, _):
        known, watch = right_answers(server, lines), Watch(server)
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            device = watch.until_serving()[ILL]
            begin = time.monotonic()
            kill(device["pid"], signal.SIGSTOP)
            seen, _ = watch.until(lambda all_: all_[ILL]["state"] == "quarantined", 20)
            back, devices = watch.until(lambda all_: all_[ILL]["state"] == "ready" and all_[ILL]["pid"] != device["pid"], BACK_S)
        report_case(report, "SIGSTOP", outcome, seen and seen - begin, LIMIT_S, back and back - begin, devices)


def ill_for_a_while(report, lines, what, checks_rows, **faults):
    with faulty_server(what.split()[0], recover_after_s=WELL_AFTER_S, **faults) as (server, state):
        known, watch = right_answers(server, lines), Watch(server)
        with asking(server, lines, known if checks_rows else None, IN_FLIGHT) as outcome:
            watch.until_serving()
            begin = first_start(state) + ILL_AFTER_S
            seen, _ = watch.until(lambda all_: all_[ILL]["state"] == "quarantined", ILL_AFTER_S + 20)
            well = first_start(state) + WELL_AFTER_S
            watch.until(lambda all_: time.monotonic() > well, WELL_AFTER_S)
            back, devices = watch.until(lambda all_: all_[ILL]["state"] == "ready", BACK_S)
        report_case(report, what, outcome, seen and seen - begin, LIMIT_S, back and max(0.0, back - well), devices, checks_rows)


def crash_at_start(report, lines):
    with faulty_server("crash", crash_at_start=6) as (server, _):
        known, watch = right_answers(server, lines), Watch(server)
        begin = time.monotonic()
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            back, devices = watch.until(lambda all_: all_[ILL]["state"] == "ready" and all_[ILL]["text_count"] > 0, BACK_S)
        report_case(report, "crash at start", outcome, None, None, back and back - begin, devices)
        report.add(holds("crash at start: tries", devices[ILL]["restart_count"] == 6, f"{devices[ILL]['restart_count']} restarts", "6"))


def full_faults():
    """Words for a device without memory for more than 256 tokens, or for a pass of a text that is not short."""
    if KIND == "cpu":
        return {"oom_above_tokens": 256, "recover_after_s": WELL_AFTER_S}
    held = scratch("faulty-held")
    held.write_text("0")
    return {"held_file": str(held)}


def hold_memory(bytes_held):
    if KIND != "cpu":
        scratch("faulty-held").write_text(str(bytes_held))


def out_of_memory(report, lines):
    with faulty_server("full", **full_faults()) as (server, state):
        known, watch = right_answers(server, lines), Watch(server)
        whole = watch.devices()[WELL]["batch_tokens_limit"]
        hold_memory(MEMORY)  # all of it: what the process has already it keeps
        # Requests of many texts, so that batches are as large as they may be.
        smallest, end = whole, time.monotonic() + WELL_AFTER_S + BACK_S
        failed = wrong = asked = 0
        back = None
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            at = 0
            while back is None and time.monotonic() < end:
                if time.monotonic() > first_start(state) + WELL_AFTER_S:
                    hold_memory(0)
                part = [lines[(at + k) % len(lines)] for k in range(256)]
                at += 256
                asked += 1
                try:
                    rows = server.embed(part, encoding_format="base64", timeout_s=60)
                    wrong += sum(row != known[text] for text, row in zip(part, rows))
                except (OSError, RuntimeError):
                    failed += 1
                limit = watch.devices()[ILL]["batch_tokens_limit"]
                smallest = min(smallest, limit)
                if smallest < whole and limit == whole:
                    back = time.monotonic() - first_start(state) - WELL_AFTER_S
            devices = watch.devices()
        outcome["failed_count"] = outcome.get("failed_count", 0) + failed
        outcome["wrong"] = outcome.get("wrong", 0) + wrong
        report.add(holds("out of memory: batches became smaller", smallest <= 256, f"{smallest} of {whole} tokens", "<= 256"))
        report_case(report, "out of memory", outcome, None, None, back, devices)


def measure(report, arguments):
    lines = texts(TEXTS)
    stopped(report, lines)
    ill_for_a_while(report, lines, "slow by ten times", True, slow_after_s=ILL_AFTER_S, slow_factor=10)
    # What a liar answers before its canary is wrong: only that nothing fails is looked at.
    ill_for_a_while(report, lines, "lying", False, lie_after_s=ILL_AFTER_S)
    crash_at_start(report, lines)
    out_of_memory(report, lines)
