"""The API against its own description."""

import json
import re
import subprocess
import sys

import yaml

from programs import MODEL, ROOT, scratch
from report import holds
from serve.running import serving

TITLE = "schemathesis with negative tests against the running server; every route and status is in the file"
IS_TIMED = False

EXAMPLES = 40
# A real matrix product on each device, and devices that end and start, at each of hundreds of requests: left to the unit tests.
LEFT_OUT = "/(v1/admin|multigpu/gpu/test|v1/models/load|v1/models/unload)"
# Left out of schemathesis' checks: a schema cannot say which token ids, prompts or models a server has.
CHECKS = "positive_data_acceptance"
# A deadline of a few milliseconds, which the schema allows, ends with 504: what was asked for, and no fault of the server.
CONFIG = """[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "504"]
"""


def documented():
    """(route, method) -> statuses, references followed."""
    paths = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())["paths"]
    found = {}
    for path, item in paths.items():
        for method, operation in item.items():
            if method != "$ref":
                found[path, method.upper()] = set(operation["responses"])
    return found


def check_metrics(report, server):
    """What was answered, as the server itself has counted it."""
    known, strange = documented(), []
    text = server.get("/metrics")[1].decode()
    seen = re.findall(r'^muster_http_requests_total\{route="([^"]*)",method="([^"]*)",status="(\d+)"\}', text, re.MULTILINE)
    for route, method, status in seen:
        if status not in known.get((route, method), set()) and status != "499":
            strange.append(f"{method} {route} {status}")
    report.raw["answered"] = seen
    report.add(holds("routes and statuses that were answered", not strange and len(seen) > 20, f"{len(seen)}; not in the file: {strange or 'none'}",
                     "all in the file"))


def measure(report, arguments):
    with serving(MODEL, "--devices", "2xcpu", name="schemathesis") as server:
        log = scratch("schemathesis.log")
        config = scratch("schemathesis.toml")
        config.write_text(CONFIG)
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", f"{server.url}/openapi.yaml",
                   "--url", server.url, "--mode", "all", "--max-examples", str(EXAMPLES), "--seed", str(arguments.seed), "--exclude-path-regex", LEFT_OUT,
                   "--exclude-checks", CHECKS, "--continue-on-failure", "--workers", "2", "--request-timeout", "20", "--no-color"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=log.parent)  # it leaves a cache there
        log.write_text(done.stdout + done.stderr)
        report.raw["command"], report.raw["said"] = command, (done.stdout + done.stderr)[-20000:]
        cases = re.search(r"([\d,]+) generated|Test cases:\s*([^\n]*)", done.stdout)
        report.add(holds("schemathesis", done.returncode == 0, f"exit {done.returncode}; {cases.group(0) if cases else log}", "exit 0"))
        status, body = server.get("/health")
        report.add(holds("the server afterwards", status == 200, f"{status} {json.loads(body)['status']}", "200 ok"))
        check_metrics(report, server)
        server.stop()
