"""Errors of a device, planted in one of two stand-ins under a server that is asked all the time."""

import datetime
import json

from gpu_path.standin import BIN, skip_reason  # noqa: F401  a row is asked for it
from programs import ROOT, scratch
from report import at_most, holds
from serve.running import serving
from serve.watching import SEEN_S, Watch, asking, right_answers, texts

TITLE = "A sticky error, no memory in each phase, a hang in a copy, a lost device, ECC: no text lost"
IS_TIMED = True

MODEL = ROOT / "tests" / "models" / "tiny"
ILL = "standin:1"
IN_FLIGHT, TEXTS, FIRST = 32, 1000, 2000  # the kernel that fails: after the right answers are known
ASIDE_S, NOTICED_S = 2.0, 60

XID = "the driver reported XID 48"  # double-bit ECC
NO_MODEL = "a model cannot be loaded"

# What is planted, and whether a new worker can mend it, for which only the first one has it; None: no worker ends; words: why the
# device is put aside.
CASES = {
    "a sticky error": ({"fail_at_kernel": FIRST, "error": "illegal address"}, True),
    "an error in a copy": ({"fail_at_copy": FIRST // 10}, True),
    "uncorrectable ECC": ({"fail_at_kernel": FIRST, "error": "ecc"}, XID),
    "a hang in a copy": ({"hang_at_copy": FIRST // 10}, True),
    "a lost device": ({"fail_at_kernel": FIRST, "error": "lost", "lost_for_s": 1e9}, False),
    "no memory for the model": ({"full_at_allocation": 1, "full_count": 1 << 40, "in_lanes": 0}, NO_MODEL),
    "no memory for the first text": ({"full_at_allocation": 1, "full_count": 2}, None),
    # A canary that finds none takes one of them at a time, and is asked again after 1, 2, 4, ... s.
    "no memory for later passes": ({"full_at_allocation": FIRST, "full_count": 12}, None),
}


def is_over(device, can_mend):
    if isinstance(can_mend, str):
        return device["state"] in ("quarantined", "given up", "restarting") and can_mend in (device["reason"] or "")
    return (device["state"] == "ready") == can_mend


def seconds_to_failed_load(log):
    """From the start of the device to the line that says that it has no model: both come before a server takes requests."""
    def time_of(words):
        line = next((line for line in log.splitlines() if words in line), None)
        return line and datetime.datetime.fromisoformat(line.split()[0].replace("Z", "+00:00"))

    started, failed = time_of(f"device {ILL}: starting"), time_of(f"{ILL} {NO_MODEL}")
    return (failed - started).total_seconds() if started and failed else None


def case(report, what, words, can_mend, lines):
    state = scratch("errors.state")
    for file in (state, scratch("errors.state.lost")):
        file.unlink(missing_ok=True)
    planted = {ILL: {"state_file": str(state), "faulty_starts": 1 if can_mend is True else 0, "in_lanes": 1, **words}}
    reports = scratch("errors.reports")
    reports.mkdir(exist_ok=True)
    for device in ("standin-0", "standin-1"):
        (reports / device).write_bytes(b"")
    gone = aside = None
    with serving(MODEL, "--devices", "2xstandin", "--no-cache-enabled", "--queue-budget", "60s", "--precision", "fp32",
                 muster=BIN / "muster", environment={"STANDIN": json.dumps(planted), "STANDIN_REPORTS": str(reports)}, name="errors") as server:
        known, watch = right_answers(server, lines), Watch(server)
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            if can_mend is None:  # nothing ends: it is computed in parts, or once there is memory
                watch.until_serving()
            else:
                gone, _ = watch.until(lambda all_: all_[ILL]["state"] != "ready" or all_[ILL]["restart_count"] > 0, NOTICED_S)
                aside, devices = watch.until(lambda all_: is_over(all_[ILL], can_mend), NOTICED_S)
        log = server.log.read_text(errors="replace")
    report.raw[what] = {"outcome": outcome, "log": log[-4000:]}
    report.add(holds(f"{what}: texts that failed or are wrong", outcome.get("failed_count") == 0 and outcome.get("wrong") == 0,
                     f"{outcome.get('failed_count')} and {outcome.get('wrong')} of {outcome.get('right', 0):,}; "
                     f"{outcome.get('failed', [])[:2]}", "0"))
    if can_mend is None:
        return
    within = f"{what}: {'replaced' if can_mend is True else 'put aside'} within"
    took_s = None if gone is None or aside is None else aside - gone
    if can_mend == NO_MODEL and took_s is not None:
        took_s = seconds_to_failed_load(log)
    if took_s is None:
        report.add(holds(within, False, f"not seen in {NOTICED_S} s", f"<= {ASIDE_S + SEEN_S} s"))
    else:
        report.add(at_most(within, took_s, ASIDE_S + SEEN_S, 2, " s"))
    report.add(holds(f"{what}: the device is named", ILL in log, "yes" if ILL in log else "no"))


def measure(report, arguments):
    lines = texts(TEXTS)
    for what, (words, can_mend) in CASES.items():
        case(report, what, words, can_mend, lines)
