"""Running muster the way a user does, and watching the processes it starts."""

import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPS = ROOT / ".deps"
MODEL = DEPS / "models" / "all-MiniLM-L6-v2"
CORPUS = DEPS / "corpus" / "packages.txt"
BUILD = ROOT / os.environ.pop("MUSTER_BUILD", "build")  # popped: muster refuses variables it does not know
MUSTER = BUILD / "bin" / "muster"
TESTS = ROOT / os.environ.pop("MUSTER_TEST_BUILD", "build-test")  # what ./test builds; popped for the same reason
KIND = os.environ.pop("ACCEPT_DEVICES", "cpu")  # rows that say `devices(2)` run on such ones: gpu-path.1
RESULTS = DEPS / "accept" if KIND == "cpu" else DEPS / "accept" / KIND
SCRATCH = RESULTS / "scratch"
# Where a row is about lives and not about numbers: a stand-in computes MiniLM too slowly to be started again and again.
LIFE_MODEL = MODEL if KIND == "cpu" else ROOT / "tests" / "models" / "tiny"


def devices(count):
    """What `--devices` names: so many of the kind that rows are measured on."""
    return f"{count}x{KIND}"


def stand_in(name):
    """A stand-in for a worker, from the build tree or else from what ./test builds: ./quickstart builds none."""
    beside = BUILD / "bin" / name
    return beside if beside.exists() else TESTS / "plain" / "bin" / name


PEERS = pathlib.Path(__file__).resolve().parent / "peers"
PEER_PYTHON = DEPS / "peers" / "bin" / "python"


def scratch(name):
    """An empty place for one file or folder of a row."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    return SCRATCH / name


def embed_command(inputs, out, *options, muster=MUSTER, model=MODEL):
    inputs = [inputs] if isinstance(inputs, (str, pathlib.Path)) else inputs
    return [str(muster), "embed", str(model), *map(str, inputs), "-o", str(out), *map(str, options)]


def remove_output(out):
    """Removes OUT and everything a run leaves beside it, so that the next one starts anew."""
    for ending in ("", ".index.jsonl", ".run.json"):
        for name in (out.name + ending, out.name + ending + ".part"):
            out.with_name(name).unlink(missing_ok=True)
    for ending in (".journal", ".ahead", ".ahead.part", ".lock"):
        out.with_name(out.name + ending).unlink(missing_ok=True)


def embed(inputs, out, *options, timeout_s=3600, **where):
    """Runs `muster embed --json` to its end and returns its report with the wall time beside it."""
    remove_output(out)
    start = time.monotonic()
    done = subprocess.run(embed_command(inputs, out, *options, "--json", "--quiet", **where),
                          capture_output=True, text=True, timeout=timeout_s)
    wall_s = time.monotonic() - start
    if done.returncode != 0:
        raise RuntimeError(f"muster embed ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    report = json.loads(done.stdout)
    report["wall_seconds"] = wall_s
    return report


def restart_count(report):
    return sum(device["restart_count"] for device in report["devices"])


def children_of(pid, name="muster-worker"):
    """The live children of `pid` whose program is `name`."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in task.read_text().split():
                status = pathlib.Path(f"/proc/{child}/status").read_text()
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name[:15] and "State:\tZ" not in status:
                    found.append(int(child))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def is_alive(pid):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def seconds_until_gone(pids, limit_s):
    """How long the last of `pids` takes to end, at most `limit_s`; None when one is still there then."""
    start = time.monotonic()
    while time.monotonic() - start < limit_s:
        if not any(is_alive(pid) for pid in pids):
            return time.monotonic() - start
        time.sleep(0.01)
    return None


def kill(pid, number=signal.SIGKILL):
    """False when the process is gone already."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def wait_for_growth(process, path, size, limit_s=120):
    """Waits until `path` has more than `size` bytes; False when the process ends or the time runs out."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.stat().st_size > size:
            return True
        time.sleep(0.005)
    return False
