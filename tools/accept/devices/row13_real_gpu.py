"""On a real GPU: every field against nvidia-smi, what each call costs, how often the counters move."""

import json
import shutil
import subprocess
import sys

import machine
from programs import BUILD, ROOT
from report import Check, MISS, PASS, at_least, at_most, holds

sys.path.insert(0, str(ROOT / "benchmarks" / "telemetry"))
import nvidia_smi

TITLE = "On a GPU: fields against nvidia-smi -q -x, the cost of each call, the counters' periods"
IS_TIMED = True

SECONDS = 60
CORE_PERCENT_MAX = 0.1
RATES_HZ = (10, 5, 2, 1)  # of the fast tier, until one keeps to the limit


def skip_reason():
    if not machine.has_gpu():
        return "there is no GPU on this machine (no NVIDIA driver)"
    return None if shutil.which("nvidia-smi") else "there is no nvidia-smi to compare with"


def ask_nvidia_smi():
    return subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True).stdout


def bench(rate_hz):
    done = subprocess.run([BUILD / "bin" / "nvml_bench", str(SECONDS), str(rate_hz)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"nvml_bench ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def fields(report, before, result, after):
    for address, rows in nvidia_smi.compare(before, result, after).items():
        bad = [row for row in rows if row["verdict"] != "ok"]
        for row in bad:
            print(f"  note  {address} {row['field']}: {row['ours']}, nvidia-smi {row['before']} .. {row['after']}")
        report.raw.setdefault("fields", {})[address] = rows
        report.add(at_least(f"{address}: fields that nvidia-smi also has", len(rows), 25, digits=0))
        report.add(holds(f"{address}: of them within its range", not bad, f"{len(rows) - len(bad)} of {len(rows)}", "all"))
    for device in result["devices"]:
        report.add(holds(f"{device['name']}: readings that failed", not device["errors"], str(device["errors"]), "none"))


def costs(report, result):
    print(f"  note  {'function':<44} {'calls':>6} {'p50 us':>9} {'p99 us':>9}")
    for call in result["calls"]:
        print(f"  note  {call['function']:<44} {call['calls']:>6} {call['p50_us']:>9.1f} {call['p99_us']:>9.1f}")
    worst = max(device["fast_calls_per_visit"] for device in result["devices"])
    report.add(at_most("calls a GPU and fast visit", worst, 3))


def total_cost(report, result):
    """The share of a core at 10 Hz, and at slower rates until one keeps to the limit."""
    shares = {RATES_HZ[0]: result["core_percent_per_gpu"]}
    for rate in RATES_HZ[1:]:
        if min(shares.values()) <= CORE_PERCENT_MAX:
            break
        shares[rate] = bench(rate)["core_percent_per_gpu"]
    report.raw["core_percent_per_gpu"] = shares
    text = ", ".join(f"{share:.3f} % at {rate} Hz" for rate, share in shares.items())
    report.add(holds("share of a core for each GPU", min(shares.values()) <= CORE_PERCENT_MAX, text,
                     f"<= {CORE_PERCENT_MAX} % at 10 Hz or the rate that achieves it"))


def periods(report, result):
    for what, name in (("energy_refresh", "energy counter"), ("power_refresh", "instant power")):
        found = result[what]
        measured = f"{found['median_ms']:.1f} ms ({found['changes']} changes)" if found["changes"] > 1 else "it never moved"
        report.add(Check(f"refresh period of the {name}", "reported", measured, PASS if found["changes"] > 1 else MISS))


def measure(report, arguments):
    subprocess.run(["ninja", "-C", BUILD, "nvml_bench"], check=True, stdout=subprocess.DEVNULL)
    before = ask_nvidia_smi()
    result = bench(RATES_HZ[0])
    after = ask_nvidia_smi()
    report.raw.update(bench=result)
    fields(report, before, result, after)
    costs(report, result)
    total_cost(report, result)
    periods(report, result)
