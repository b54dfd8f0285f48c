#!/usr/bin/env python3
"""Writes the Grafana dashboards: muster.json of the devices, muster_server.json of `muster serve`.

    make_dashboard.py              writes both beside this script
    make_dashboard.py --check      ends with 1 when one is not what this script writes

No query falls back to a zero of its own (`or vector(0)`): no data is shown as no data.
"""

import json
import pathlib
import sys

import device_dashboard
import server_dashboard

DASHBOARDS = {"muster.json": device_dashboard, "muster_server.json": server_dashboard}


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: make_dashboard.py [--check]")
    for name, made in DASHBOARDS.items():
        path = pathlib.Path(__file__).with_name(name)
        text = json.dumps(made.dashboard(), indent=1) + "\n"
        if not sys.argv[1:]:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{name} is not what make_dashboard.py writes: run it")


if __name__ == "__main__":
    main()
