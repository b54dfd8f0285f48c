"""One device of two is broken: it fails at everything, answers NaN or too few rows, hangs, or cannot load."""

import json
import os
import subprocess
import threading
import time

from programs import MODEL, embed_command, remove_output, scratch, stand_in
from report import at_most, holds
from serve.running import serving

TITLE = "a broken device beside a healthy one: all texts right, within 3x the time of the healthy one alone, and named"
IS_TIMED = True

FAULTY_WORKER = stand_in("muster-worker-faulty")
TEXTS = 3000
US_PER_TOKEN = 200      # of both devices: the healthy one alone takes some seconds
TIMES_MOST = 3
SLACK_S = 2             # of a server with few texts: the silence that a first batch is allowed at least
ILL = "cpu:1"

# What is wrong, from the device's second batch on: its first one is the canary at its load.
FAULTS = {
    "fails at everything": {"fail_from_batch": 2},
    "answers NaN": {"nan_from_batch": 2},
    "answers too few rows": {"short_from_batch": 2},
    "hangs in its first batch": {"hang_at_batch": 2},
    "cannot load": {"fail_load": "Unsupported"},
}


def skip_reason():
    return None if FAULTY_WORKER.exists() else "muster-worker-faulty is not built (./test builds it)"


def lines():
    # Different lengths; the faulty worker's rows depend on the ids alone.
    return [f"text {i} " + "of words that differ " * (i % 7) + str(i * 7919) for i in range(TEXTS)]


def environment_of(faults):
    words = {"cpu:0": {"batch_us_per_token": US_PER_TOKEN}, ILL: {"batch_us_per_token": US_PER_TOKEN, **faults}}
    return {"FAULTY_WORKER": json.dumps(words)}


def run_embed(devices, faults, name, source):
    out = scratch(f"{name}.npy")
    remove_output(out)
    command = embed_command(source, out, "--devices", devices, "--json", "--precision", "fp32", "--worker-program", FAULTY_WORKER)
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment_of(faults)})
    wall_s = time.monotonic() - begin
    return {"code": done.returncode, "wall_s": wall_s, "said": done.stderr, "printed": done.stdout,
            "rows": out.read_bytes() if out.exists() else b""}


def embed_rows(report, source):
    alone = run_embed("1xcpu", {}, "broken-alone", source)
    report.raw["embed alone"] = {"wall_s": alone["wall_s"], "code": alone["code"]}
    report.add(holds("embed: the healthy device alone", alone["code"] == 0, f"exit {alone['code']}, {alone['wall_s']:.1f} s"))
    for what, faults in FAULTS.items():
        ill = run_embed("2xcpu", faults, "broken-beside", source)
        report.raw[f"embed, {what}"] = {key: ill[key] for key in ("code", "wall_s", "said")}
        report.add(holds(f"embed, {what}: exit code", ill["code"] == 0, f"{ill['code']}; {ill['said'][-200:]!r}" if ill["code"] else "0", "0"))
        report.add(holds(f"embed, {what}: rows as those of the healthy device", ill["rows"] == alone["rows"] and bool(alone["rows"]),
                         "the same bytes" if ill["rows"] == alone["rows"] else f"{len(ill['rows'])} other bytes", "the same bytes"))
        report.add(at_most(f"embed, {what}: time", ill["wall_s"] / max(alone["wall_s"], 1e-9), TIMES_MOST, 2, "x alone"))
        report.add(holds(f"embed, {what}: the device is named", f"{ILL}: " in ill["said"], "yes" if f"{ILL}: " in ill["said"] else ill["said"][-200:]))


def ask_all(server, texts):
    """All texts in requests of 30, from four clients; the rows in order, and how long it took."""
    parts = [texts[at:at + 30] for at in range(0, len(texts), 30)]
    rows, failed, next_part, lock = [None] * len(parts), [], iter(range(len(parts))), threading.Lock()

    def work():
        while True:
            with lock:
                at = next(next_part, None)
            if at is None:
                return
            try:
                rows[at] = server.embed(parts[at], encoding_format="base64", timeout_s=120)
            except (OSError, RuntimeError) as error:
                failed.append(repr(error)[:200])

    begin = time.monotonic()
    clients = [threading.Thread(target=work) for _ in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    return rows, failed, time.monotonic() - begin


def serve_rows(devices, faults, texts):
    with serving(MODEL, "--devices", devices, "--no-cache-enabled", "--queue-budget", "120s", "--precision", "fp32",
                 "--worker-program", FAULTY_WORKER, environment=environment_of(faults), name="broken-serve") as server:
        rows, failed, wall_s = ask_all(server, texts)
        named = [device for device in json.loads(server.get("/v1/devices")[1])["devices"] if device["name"] == ILL]
        code = server.stop()
        return {"rows": rows, "failed": failed, "wall_s": wall_s, "code": code, "device": named[0] if named else {},
                "said": server.log.read_text(errors="replace")}


def measure(report, arguments):
    texts = lines()
    source = scratch("broken.txt")
    source.write_text("\n".join(texts) + "\n")
    embed_rows(report, source)
    alone = serve_rows("1xcpu", {}, texts)
    for what, faults in FAULTS.items():
        ill = serve_rows("2xcpu", faults, texts)
        report.raw[f"serve, {what}"] = {key: ill[key] for key in ("failed", "wall_s", "code", "device")}
        right = ill["rows"] == alone["rows"] and not alone["failed"]
        report.add(holds(f"serve, {what}: every answer right", right and not ill["failed"],
                         "all" if right else f"{len(ill['failed'])} failed: {ill['failed'][:1]}", "all"))
        report.add(at_most(f"serve, {what}: time", (ill["wall_s"] - SLACK_S) / alone["wall_s"], TIMES_MOST, 2, "x alone"))
        device = ill["device"]
        reasons = [device.get("reason") or ""] + [str(model.get("reason") or "") for model in device.get("models", [])
                                                  if isinstance(model, dict)]
        is_named = any(reasons) or device.get("quarantine_count", 0) > 0 or device.get("restart_count", 0) > 0
        report.add(holds(f"serve, {what}: the status tells", is_named, f"{device.get('state')}: {[r for r in reasons if r][:1]}"))
        report.add(holds(f"serve, {what}: SIGTERM", ill["code"] == 0, str(ill["code"]), "0"))
