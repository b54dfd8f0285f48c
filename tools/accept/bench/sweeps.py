"""`muster bench run` while a row looks at it: a folder of its own, files in it, and what is kept there."""

import csv
import json
import os
import shutil
import subprocess
import time

import jsonschema

from programs import BUILD, MUSTER, ROOT, scratch, stand_in

SCHEMA = json.loads((ROOT / "docs" / "formats" / "bench-result.schema.json").read_text())
FAKE_NVML = BUILD / "lib" / "libfakenvml.so"
TINY = ROOT / "tests" / "models" / "tiny"
GPU_KEYS = ("utilization_percent", "memory_used_mb", "memory_total_mb", "memory_percent", "temperature_c", "power_draw_w")


def stand_in_devices():
    """Variables by which workers compute nothing and GPUs are libfakenvml's, and where they are missing."""
    return {"MUSTER_WORKER_PROGRAM": str(stand_in("zero_worker")), "ZERO_WORKER": "echo dim=32",
            "MUSTER_NVML_PATH": str(FAKE_NVML)}


class Sweep:
    """One table and its points."""

    def __init__(self, name, table="x.csv"):
        self.folder = scratch(name)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.table, self.points = self.folder / table, self.folder / table.replace(".csv", ".points")

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def start(self, *words, env=None):
        return subprocess.Popen([str(MUSTER), "bench", "run", *map(str, words)], cwd=self.folder, text=True,
                                env=dict(os.environ, **(env or {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, env=None, timeout_s=1800):
        """Exit code, standard output, standard error."""
        process = self.start(*words, env=env)
        out, err = process.communicate(timeout=timeout_s)
        return process.returncode, out, err

    def files(self):
        return sorted(path for path in self.points.glob("*.json")) if self.points.exists() else []

    def results(self):
        """Every point's result, each read whole and as its schema says."""
        found = [json.loads(path.read_text()) for path in self.files()]
        for result in found:
            jsonschema.validate(result, SCHEMA)
        return found

    def rows(self):
        if not self.table.exists():
            return []
        with self.table.open(newline="") as file:
            return list(csv.DictReader(file))

    def columns(self):
        with self.table.open(newline="") as file:
            return next(csv.reader(file))

    def wait_for(self, process, count, limit_s=300):
        """Until so many points are kept; False where the run ended before."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end and process.poll() is None:
            if len(self.files()) >= count:
                return True
            time.sleep(0.01)
        return False

    def differences(self):
        """Cells of the table that are not what the point's file says, worked out anew."""
        wrong, rows = [], {row["point"]: row for row in self.rows()}
        for result in self.results():
            record = result["run"]
            row = rows.pop(record["point"], None)
            if row is None:
                wrong.append(f"{record['point']} has no row")
                continue
            cells = flat(record)
            wrong += [f"{record['point']} {name}: {row.get(name)!r} and not {text!r}" for name, text in cells.items()
                      if not is_same(row.get(name), text)]
            wrong += [f"{record['point']} {name}: {text!r} in no file" for name, text in row.items() if text and name not in cells]
        return wrong + [f"{point} has no file" for point in rows]


def flat(value, name=""):
    """Nested keys joined by "_", as document 1 has them."""
    if isinstance(value, dict):
        cells = {}
        for key, one in value.items():
            cells.update(flat(one, f"{name}_{key}" if name else key))
        return cells
    if isinstance(value, list):
        return {name: ",".join(scalar(one) for one in value)}
    return {name: scalar(value)}


def is_same(cell, text):
    """A number may be written with a digit more than the fewest that tell it from its neighbours."""
    try:
        return cell == text or float(cell) == float(text)
    except (TypeError, ValueError):
        return False


def scalar(value):
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)
