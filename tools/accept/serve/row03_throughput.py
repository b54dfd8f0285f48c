"""What of the workers' throughput comes through HTTP."""

import json
import shutil
import statistics
import subprocess

from programs import MODEL, scratch
from report import at_least
from serve import load
from serve.running import serving
from texts import sample_file

TITLE = "Throughput through HTTP (wrk) against the workers fed the same batches without a parent, 2xcpu"
IS_TIMED = True

SECONDS, TEXTS_A_REQUEST = 10, 32
# (what, texts a request, encoding, connections, at least)
CASES = [("float JSON, 32 texts a request", TEXTS_A_REQUEST, "float", 8, 0.90),
         ("base64, 32 texts a request", TEXTS_A_REQUEST, "base64", 8, 0.95),
         ("1 text a request, 64 connections", 1, "base64", 64, 0.80)]

SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local at, step = 0, 1
function init(args) math.randomseed(tonumber(args[1] or 1)); at = math.random(#bodies) end
function request()
  at = at %% #bodies + 1
  return wrk.format("POST", "/v1/embeddings", {["Content-Type"] = "application/json"}, bodies[at])
end
function response(status) if status ~= 200 then bad = (bad or 0) + 1 end end
function done(summary)
  io.write(string.format('{"requests": %%d, "microseconds": %%d, "errors": %%d}\\n', summary.requests, summary.duration,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout))
end
"""


def skip_reason():
    return None if shutil.which("wrk") else "wrk is not installed"


def wrk(server, bodies, connections):
    """Requests a second."""
    script = scratch("bodies.lua")
    script.write_text(SCRIPT % bodies)
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--timeout", "60s", "-s", script, server.url],
                          check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found["errors"] == 0, found
    return found["requests"] / (found["microseconds"] / 1e6)


def measure(report, arguments):
    load.build("worker_direct", "muster", "muster-worker")
    texts = sample_file()
    lines = texts.read_text(encoding="utf-8").splitlines()
    files = {case[0]: load.write_bodies(f"case-{i}.bodies", case[1], len(lines) // case[1], encoding=case[2], texts=lines)
             for i, case in enumerate(CASES)}
    ratios, raw = {case[0]: [] for case in CASES}, []
    for _ in range(arguments.rounds):
        with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", name="throughput") as server:
            precision = load.served_precision(server)
            rates = {}
            for what, per_request, _, connections, _ in CASES:
                wrk(server, files[what], connections)  # the first seconds are its own warming up
                rates[what] = wrk(server, files[what], connections) * per_request
        alone = load.worker_alone(texts, precision=precision, batch=TEXTS_A_REQUEST, seconds=SECONDS)
        raw.append({"precision": precision, "texts_per_second": rates, "alone": alone})
        for what, rate in rates.items():
            ratios[what].append(rate / alone["texts_per_second"])
    report.raw["rounds"] = raw
    print(f"  workers alone: {statistics.median(r['alone']['texts_per_second'] for r in raw):.0f} texts/s ({raw[0]['precision']})")
    for what, _, _, _, limit in CASES:
        report.add(at_least(f"{what}: of the workers' throughput", statistics.median(ratios[what]), limit, 3))
