"""Errors of a device, planted in one of two stand-ins under a server that is asked all the time."""

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

# What is planted at the first start, and whether a new worker can mend it.
CASES = {
    "a sticky error": ({"fail_at_kernel": FIRST, "error": "illegal address"}, True),
    "an error in a copy": ({"fail_at_copy": FIRST // 10}, True),
    "uncorrectable ECC": ({"fail_at_kernel": FIRST, "error": "ecc"}, True),
    "a hang in a copy": ({"hang_at_copy": FIRST // 10}, True),
    "a lost device": ({"fail_at_kernel": FIRST, "error": "lost", "lost_for_s": 1e9}, False),
    "no memory for the model": ({"full_at_allocation": 1, "full_count": 1 << 40, "in_lanes": 0}, False),
    "no memory for the first passes": ({"full_at_allocation": 1, "full_count": 4}, None),
    "no memory for later passes": ({"full_at_allocation": FIRST, "full_count": 40}, None),
}


def case(report, what, words, can_mend, lines):
    state = scratch("errors.state")
    for file in (state, scratch("errors.state.lost")):
        file.unlink(missing_ok=True)
    planted = {ILL: {"state_file": str(state), "faulty_starts": 1 if can_mend else 0, "in_lanes": 1, **words}}
    gone = aside = None
    with serving(MODEL, "--devices", "2xstandin", "--no-cache-enabled", "--queue-budget", "60s", "--precision", "fp32",
                 muster=BIN / "muster", environment={"STANDIN": json.dumps(planted)}, name="errors") as server:
        known, watch = right_answers(server, lines), Watch(server)
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            if can_mend is None:  # nothing ends: it is computed in parts
                watch.until_serving()
            else:
                gone, _ = watch.until(lambda all_: all_[ILL]["state"] != "ready" or all_[ILL]["restart_count"] > 0, NOTICED_S)
                is_aside = (lambda d: d["state"] == "ready") if can_mend else (lambda d: d["state"] != "ready")
                aside, devices = watch.until(lambda all_: is_aside(all_[ILL]), NOTICED_S)
        log = server.log.read_text(errors="replace")
    report.raw[what] = {"outcome": outcome, "log": log[-4000:]}
    report.add(holds(f"{what}: texts that failed or are wrong", outcome.get("failed_count") == 0 and outcome.get("wrong") == 0,
                     f"{outcome.get('failed_count')} and {outcome.get('wrong')} of {outcome.get('right', 0):,}; "
                     f"{outcome.get('failed', [])[:2]}", "0"))
    if can_mend is None:
        return
    took = aside - gone if gone is not None and aside is not None else 99
    report.add(at_most(f"{what}: {'replaced' if can_mend else 'put aside'} within", took, ASIDE_S + SEEN_S, 2, " s"))
    report.add(holds(f"{what}: the device is named", ILL in log, "yes" if ILL in log else "no"))


def measure(report, arguments):
    lines = texts(TEXTS)
    for what, (words, can_mend) in CASES.items():
        case(report, what, words, can_mend, lines)
