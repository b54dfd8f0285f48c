"""report.py RESULTS OUT.json COMMIT: what check.sh printed, step by step, as one result file.

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
        head = re.match(r"=== \[(\d+) s\] (\w+)", line)
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
    results, out, commit = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    machine = (results / "machine.txt").read_text().splitlines()
    report = {"commit": commit, "date": datetime.date.today().isoformat(), "machine": machine,
              "command": "tools/gpu_check/check.sh BUNDLE RESULTS", "steps": steps((results / "log.txt").read_text())}
    out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
