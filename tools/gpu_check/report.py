"""report.py RESULTS OUT.json: what `run` printed, step by step, as one result file.

Lines of JSON become objects, the others stay text. `checks` has those that were held against a limit, by their steps.
"""

import datetime
import json
import pathlib
import re
import sys


def steps(log):
    result = {}
    name = None
    for line in log.splitlines():
        head = re.match(r"\[(\d+) s\] step (\w+)$", line)
        if head:
            name = head[2]
            result[name] = {"begins_s": int(head[1]), "lines": []}
        elif name and line.strip():
            try:
                result[name]["lines"].append(json.loads(line))
            except json.JSONDecodeError:
                result[name]["lines"].append(line)
    return result


def checks(found):
    return {name: those for name, step in found.items()
            if (those := [line for line in step["lines"] if isinstance(line, dict) and "check" in line])}


def main():
    results, out = map(pathlib.Path, sys.argv[1:3])
    machine = (results / "machine.txt").read_text().splitlines()
    commit = next(line.removeprefix("muster ") for line in machine if line.startswith("muster "))
    found = steps((results / "log.txt").read_text())
    report = {"commit": commit, "date": datetime.date.today().isoformat(), "machine": machine,
              "command": "muster-gpu-check/run RESULTS", "checks": checks(found), "steps": found}
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
