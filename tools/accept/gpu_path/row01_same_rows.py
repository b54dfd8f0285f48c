"""Rows of other lists on two stand-ins for GPUs, with the bars that they have on CPUs."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

from gpu_path.standin import TREE, skip_reason  # noqa: F401  a row is asked for it
from programs import DEPS, ROOT
from report import PASS, Check, holds

TITLE = "Rows 2, 3, 6, 7 of spine and 1, 5, 6, 14 of serve on 2xstandin: the same bars"
IS_TIMED = True

LISTS = {"spine": (2, 3, 6, 7), "serve": (1, 5, 6, 14)}
ROW_S = 900  # of a row: they take from one minute to five


def run_row(words, environment):
    """Why the row came to no end; None where it did. All of it is ended."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        process.wait(ROW_S)
        return None
    except subprocess.TimeoutExpired:
        return f"no end within {ROW_S} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measure(report, arguments):
    environment = {**os.environ, "ACCEPT_DEVICES": "standin", "MUSTER_BUILD": str(TREE)}
    for name, number in ((name, number) for name, numbers in LISTS.items() for number in numbers):
        row = f"{name}.{number}"
        raw = DEPS / "accept" / "standin" / f"{row}.json"
        raw.unlink(missing_ok=True)
        words = [sys.executable, "-B", ROOT / "tools" / "accept" / "main.py", row, "--seed", str(arguments.seed)]
        began = time.monotonic()
        reason = run_row(words + (["--anyway"] if arguments.anyway else []), environment)
        print(f"  note  {row}: {time.monotonic() - began:.0f} s", flush=True)
        found = json.loads(raw.read_text()) if raw.exists() else None
        report.raw[row] = found
        if found is None:
            report.add(holds(row, False, reason or "it left no result", "a result"))
            continue
        for check in found["checks"]:
            report.add(Check(**{**check, "what": f"{row}, {check['what']}"}))
        # A row that was skipped as a whole has shown nothing.
        if not any(check["verdict"] == PASS for check in found["checks"]):
            report.add(holds(f"{row}: something was measured", False, "nothing"))
