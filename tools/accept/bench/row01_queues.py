"""Queues whose answer is known: M/D/1 and M/M/1 at three loads, 100,000 requests each; beside it two others on the same server."""

import json
import pathlib
import subprocess

from bench import running
from bench.peer_packages import install
from programs import MODEL, scratch
from report import holds, skipped

TITLE = "null server, M/D/1 and M/M/1 at load 0.5, 0.8, 0.95, 10^5 requests: percentiles against Lindley's recursion"
IS_TIMED = True

INTERVALS = 18    # of two queues, three loads, three percentiles
OUTSIDE_MOST = 3  # of them, at 95 %: more are outside by chance in 1 of 100 runs
MEAN_S, RATE, REQUESTS = 0.010, 80, 2000  # of the comparison with others: rates that a Python program keeps
SHARES = (0.5, 0.95, 0.99)


def server_side(log):
    """What the server itself has seen: seconds from each arrival to the sending of its answer."""
    return [(int(end) - int(begin)) * 1e-9 for begin, end in (line.split() for line in log.read_text().splitlines())]


def errors_of(name, percentiles, log, raw):
    """How far a client's percentiles are from those of the server in the same run; at least three lines as (share, ms, ms)."""
    truth = server_side(log)[-REQUESTS:]
    rows = [(share, 1000 * percentiles[share], 1000 * running.percentile(truth, share)) for share in SHARES]
    raw[name] = [{"share": share, "client_ms": client, "server_ms": server} for share, client, server in rows]
    text = ", ".join(f"p{100 * share:g} {client:.2f} ms ({client - server:+.2f})" for share, client, server in rows)
    print(f"  note  {name} on M/M/1 at load {MEAN_S * RATE:.1f}, error against the server: {text}", flush=True)
    return rows


def run_ours(url):
    result, _ = running.measure("http", f"{url}/", "--rate", RATE, "--requests", REQUESTS, "--warm-up", "none")
    latency = result["points"][0]["trials"][0]["latency"]
    return {0.5: latency["p50"]["value"], 0.95: latency["p95"]["value"], 0.99: latency["p99"]["value"]}


def run_locust(python, url):
    script = pathlib.Path(__file__).parent / "peer_locust.py"
    out = scratch("locust")
    subprocess.run([python, "-m", "locust", "-f", script, "--headless", "--host", url, "--users", "400", "--spawn-rate", "400",
                    "--run-time", f"{REQUESTS / RATE:.0f}s", "--csv", out, "--only-summary"], check=True, capture_output=True, timeout=300)
    header, *rows = (line.split(",") for line in pathlib.Path(f"{out}_stats.csv").read_text().splitlines())
    total = dict(zip(header, rows[-1]))
    return {0.5: float(total["50%"]) / 1000, 0.95: float(total["95%"]) / 1000, 0.99: float(total["99%"]) / 1000}


def run_vllm(python, url):
    script = pathlib.Path(__file__).parent / "peer_vllm.py"
    done = subprocess.run([python, script, url, str(RATE), str(REQUESTS), MODEL], check=True, capture_output=True, text=True, timeout=600)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    return {share: said[f"p{100 * share:g}"] for share in SHARES}


def measure_peers(report):
    runs = {"muster bench": (None, lambda python, url: run_ours(url)), "locust": ("locust", run_locust),
            "vLLM's benchmarks.serve": ("vllm", run_vllm)}
    for name, (package, run) in runs.items():
        python, reason = install(package) if package else (None, None)
        if reason:
            report.add(skipped(name, reason))
            continue
        log = scratch("null-server.log")
        try:
            with running.null_server("--law", "exponential", "--mean", MEAN_S, "--seed", 7, "--log", log) as url:
                percentiles = run(python, url)
        except (subprocess.SubprocessError, RuntimeError, KeyError, ValueError) as error:
            report.add(skipped(name, f"{type(error).__name__}: {error} {getattr(error, 'stderr', '') or ''}"[-400:]))
            continue
        errors_of(name, percentiles, log, report.raw)


def measure(report, arguments):
    outside = intervals = 0
    for part in ("queue-d", "queue-m"):
        code, printed, said = running.bench("selftest", part, "--full", "--json")
        if code not in (0, running.LATE):
            raise RuntimeError(f"muster bench selftest {part} ended with {code}: {said[-400:]}")
        checks = json.loads(printed)["checks"]
        report.raw[f"selftest {part}"] = checks
        for check in checks:
            if check["what"].endswith("closed form in the interval"):
                intervals += 1
                outside += not check["met"]
            else:
                report.add(holds(check["what"], check["met"], check["measured"], check["required"]))
    report.add(holds("closed forms outside their 95 % interval", outside <= OUTSIDE_MOST and intervals == INTERVALS,
                     f"{outside} of {intervals}", f"at most {OUTSIDE_MOST} of {INTERVALS}, as chance has it in 99 of 100 runs"))
    measure_peers(report)
