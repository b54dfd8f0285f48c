"""report.py RESULTS OUT.json: what `run` printed, step by step, as one result file.

Lines of JSON become objects, the others stay text.
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


def main():
    results, out = map(pathlib.Path, sys.argv[1:3])
    machine = (results / "machine.txt").read_text().splitlines()
    commit = next(line.removeprefix("muster ") for line in machine if line.startswith("muster "))
    report = {"commit": commit, "date": datetime.date.today().isoformat(), "machine": machine,
              "command": "muster-gpu-check/run RESULTS", "steps": steps((results / "log.txt").read_text())}
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
