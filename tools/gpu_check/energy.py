"""Row 15 of the list `bench`: the counter of energy against the integral of power, how alike repeats are, and what watching costs.

usage: energy.py BIN MODEL TEXTS cuda|standin|cpu SECONDS      lines of JSON; exit code 1 where something could not be measured

Joules, power and texts a second are those of `muster bench run`. What watching costs is a matter of thousandths: the engine alone computes
in turns with and without `muster monitor` beside it, which reads ten times a second. A rehearsal on the stand-in has libfakenvml's GPU.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

COUNTER_WITHIN, REPEATS_WITHIN, WATCHING_AT_MOST = 0.02, 0.005, 0.002
BATCH, CLIENTS, RUN_S, RUNS = 256, 4, 6, 4
LINES_MOST = 400_000
ROUNDS = 6  # of half a second, of which the first is not counted: something began or ended beside it
TURNS = "off on on off off on on off".split()
PART_S = 40  # that the second part is left


def check(name, value, limit, **more):
    print(json.dumps({"check": name, "value": value, "at_most": limit, "met": value <= limit, **more}), flush=True)


def variation(values):
    return statistics.stdev(values) / statistics.mean(values)


class Product:
    """The programs, the device, and what a rehearsal has in the place of a GPU."""

    def __init__(self, folder, model, kind):
        self.bin, self.model, self.kind, self.environment = pathlib.Path(folder), model, kind, dict(os.environ)
        self.device = "cpu:0" if kind == "cpu" else "cuda:0"
        if kind == "standin":
            pathlib.Path("gpu.json").write_text(json.dumps({"fake_nvml": 1, "gpus": [{"model": "H200", "load": 0.5}]}))
            self.environment |= {"MUSTER_NVML_PATH": str(self.bin / "libfakenvml.so"), "FAKENVML_SCENARIO": str(pathlib.Path("gpu.json").resolve())}
        # Workers that compute nothing, on a GPU that is not there.
        self.stand_ins = {"MUSTER_WORKER_PROGRAM": str(self.bin / "zero_worker"), "ZERO_WORKER": "echo dim=32"} if kind == "standin" else {}

    def bench(self, texts):
        """The record of one point of so many texts: docs/formats/bench-run.md."""
        pathlib.Path("energy.yaml").write_text(
            f'name: energy\nbackend: {{type: muster, model: {json.dumps(str(self.model))}, device_ids: ["{self.device}"], torch_dtype: bfloat16, task: '
            "feature-extraction}\n"
            f"scenario: {{dataset_name: energy.txt, num_samples: {texts}, input_shapes: {{batch_size: {BATCH}}}, clients: {CLIENTS}, warm_up: none}}\n"
            "reporter: {output_file: energy.csv}\n")
        done = subprocess.run([self.bin / "muster", "bench", "run", "energy.yaml", "--restart", "--color", "never"], capture_output=True, text=True,
                              env=self.environment | self.stand_ins)
        points = sorted(pathlib.Path("energy.points").glob("*.json"))
        if done.returncode not in (0, 22) or len(points) != 1:  # 22: measured, and not valid
            raise RuntimeError(f"bench run ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return json.loads(points[0].read_text())["run"]

    def encoder(self):
        return subprocess.Popen([self.bin / "encode_bench", self.model, "--device", self.kind, "--precision", "bf16", "--lanes", "2", "--serve"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)

    def watch(self):
        """`muster monitor`, once it has written its first lines."""
        out = pathlib.Path("watched.jsonl")
        out.unlink(missing_ok=True)
        monitor = subprocess.Popen([self.bin / "muster", "monitor", "--out", out, "--interval", "100ms"], stdout=subprocess.DEVNULL, env=self.environment)
        until = time.monotonic() + 10
        while monitor.poll() is None and time.monotonic() < until and not (out.exists() and out.read_bytes().count(b"\n") >= 3):
            time.sleep(0.02)
        if monitor.poll() is not None:
            raise RuntimeError(f"monitor ended with {monitor.returncode}")
        return monitor


def write_texts(source, count):
    lines = pathlib.Path(source).read_text(encoding="utf-8").splitlines()
    with open("energy.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{lines[i % len(lines)]} {i // len(lines)}\n" for i in range(count))


def counter_and_repeats(product, source, end):
    write_texts(source, 16 * BATCH)
    first = product.bench(16 * BATCH)["summary"]  # which says how many texts take RUN_S
    count = int(RUN_S * first["total_prompts"] / first["total_duration_seconds"]) // BATCH * BATCH
    count = max(BATCH, min(count, LINES_MOST))
    write_texts(source, count)
    speeds, joules, differences, slowest = [], [], [], 0.0
    while len(speeds) < RUNS and time.monotonic() + slowest + PART_S < end:
        began = time.monotonic()
        record = product.bench(count)
        slowest = max(slowest, time.monotonic() - began)
        energy, summary = record["energy"], record["summary"]
        sampled = (record.get("gpu_stats") or {}).get("gpu_0", {}).get("power_draw_w")
        speeds.append(summary["total_prompts"] / summary["total_duration_seconds"])
        watts = energy["joules"] / energy["duration_seconds"] if energy["joules"] else None
        if watts:
            joules.append(energy["joules_per_prompt"])
        if watts and sampled and energy["method"] == "counter":
            differences.append(abs(watts / sampled - 1))
        print(json.dumps({"texts": count, "texts_per_second": round(speeds[-1], 1), "joules": energy["joules"], "method": energy["method"],
                          "joules_error": energy["error_joules"], "watts_by_counter": watts, "watts_sampled": sampled, "valid": record["valid"],
                          "reason": energy["missing_reason"] or energy["counter_missing_reason"] or "; ".join(record["invalid_reasons"])}), flush=True)
    if differences:
        check("the counter of energy against the mean of the sampled power", max(differences), COUNTER_WITHIN)
    if len(speeds) > 1:
        check("repeats: variation of texts a second over HTTP", variation(speeds), REPEATS_WITHIN, repeats=len(speeds))
    if len(joules) > 1:
        check("repeats: variation of joules a text", variation(joules), REPEATS_WITHIN, repeats=len(joules))
    return len(speeds) > 1 and (len(differences) > 0 or product.kind != "cuda")


def watching(product, end):
    shape = "128x128" if product.kind == "cuda" else "8x16"
    encoder, monitor, blocks = product.encoder(), None, []
    try:
        for turn in TURNS:
            if time.monotonic() + ROUNDS > end:
                break
            if (turn == "on") != (monitor is not None):
                if monitor is None:
                    monitor = product.watch()
                else:
                    monitor.send_signal(signal.SIGTERM)
                    monitor.wait(timeout=10)
                    monitor = None
            speeds = []
            for _ in range(ROUNDS):
                encoder.stdin.write(shape + "\n")
                encoder.stdin.flush()
                speeds.append(json.loads(encoder.stdout.readline())["tokens_per_second"])
            blocks.append((turn, statistics.median(speeds[1:])))
    finally:
        if monitor is not None:
            monitor.kill()
            monitor.wait()
        encoder.stdin.close()
        encoder.wait(timeout=20)
    print(json.dumps({"blocks": blocks}), flush=True)
    off = [speed for turn, speed in blocks if turn == "off"]
    # Each pair of neighbours has one of both, so a drift of clocks is in all of them alike.
    pairs = [dict(blocks[i:i + 2]) for i in range(0, len(blocks) - 1, 2)]
    costs = [1 - pair["on"] / pair["off"] for pair in pairs]
    if len(costs) < 2:
        return False
    check("repeats: variation of tokens a second of the engine alone", variation(off), REPEATS_WITHIN, repeats=len(off))
    check("share of the throughput that watching ten times a second takes", statistics.mean(costs), WATCHING_AT_MOST, pairs=len(costs),
          standard_error=statistics.stdev(costs) / len(costs) ** 0.5)
    return True


def main():
    folder, model, texts, kind, seconds = sys.argv[1:]
    end = time.monotonic() + float(seconds)
    product, good = Product(folder, model, kind), True
    for part in (lambda: counter_and_repeats(product, texts, end), lambda: watching(product, end)):
        try:
            good &= part()
        except (OSError, RuntimeError, LookupError, TypeError, ValueError, ZeroDivisionError, subprocess.SubprocessError) as error:
            print(json.dumps({"failed": f"{type(error).__name__}: {str(error)[-300:]}"}), flush=True)  # the other one runs all the same
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
