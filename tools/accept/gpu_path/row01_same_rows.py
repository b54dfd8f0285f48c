"""Rows of other lists on two stand-ins for GPUs, with the bars that they have on CPUs."""

import json
import os
import subprocess
import sys

from gpu_path.standin import TREE, skip_reason  # noqa: F401  a row is asked for it
from programs import DEPS, ROOT
from report import Check, holds

TITLE = "Rows 2, 3, 6, 7 of spine and 1, 5, 6, 14 of serve on 2xstandin: the same bars"
IS_TIMED = True

LISTS = {"spine": (2, 3, 6, 7), "serve": (1, 5, 6, 14)}


def measure(report, arguments):
    for name, numbers in LISTS.items():
        for number in numbers:
            raw = DEPS / "accept" / "standin" / f"{name}.{number}.json"
            raw.unlink(missing_ok=True)
            command = [sys.executable, "-B", ROOT / "tools" / "accept" / "main.py", f"{name}.{number}", "--seed", str(arguments.seed)]
            subprocess.run(command + (["--anyway"] if arguments.anyway else []), stdout=subprocess.DEVNULL,
                           env={**os.environ, "ACCEPT_DEVICES": "standin", "MUSTER_BUILD": str(TREE)})
            found = json.loads(raw.read_text()) if raw.exists() else None
            report.raw[f"{name}.{number}"] = found
            if found is None:
                report.add(holds(f"{name}.{number}", False, "it left no result", "a result"))
                continue
            for check in found["checks"]:
                report.add(Check(**{**check, "what": f"{name}.{number}, {check['what']}"}))
