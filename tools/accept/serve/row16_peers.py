"""The other servers a user might take, on the same two cores and with the same texts, round by round."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import time
import types
import urllib.request

import machine
from programs import DEPS, MODEL, MUSTER, ROOT, scratch
from report import at_least, at_most
from serve import load

TITLE = "FastAPI, infinity and Ray Serve with sentence-transformers, and muster serve, on the same two cores"
IS_TIMED = True

PEERS = DEPS / "serving-peers"
SERVERS = ROOT / "benchmarks" / "serving" / "peers"
CORES = sorted(os.sched_getaffinity(0))[:2]
START_LIMIT_S, SECONDS, IDLE_RATE = 120, 8, 10
BULK_TEXTS, BULK_CONNECTIONS, SINGLE_CONNECTIONS, IDLE_CONNECTIONS = 32, 8, 64, 4
BULK_WITH_AMX, BULK_WITHOUT, SINGLE, IDLE, START_S, MEMORY = 3, 1.5, 4, 0.5, 2, 0.6


@dataclasses.dataclass
class Peer:
    """A server: the environment that must be there, its words, and where it runs."""
    environment: str
    words: list
    variables: dict = dataclasses.field(default_factory=dict)
    folder: pathlib.Path = ROOT

    def is_here(self):
        return (PEERS / self.environment / "bin" / "python").exists() and self.folder.exists()


def uvicorn(*words):
    return ["bin/uvicorn", "fastapi_st:app", "--app-dir", str(SERVERS), "--no-access-log", "--port", "{port}", *words]


def infinity(model, engine, *words):
    return ["bin/infinity_emb", "v2", "--model-id", str(model), "--engine", engine, "--device", "cpu", "--url-prefix", "/v1",
            "--host", "127.0.0.1", "--port", "{port}", *words]


QUIET = {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0", "MODEL": str(MODEL)}
ALL = {
    "FastAPI, one process": Peer("fastapi", uvicorn()),
    "FastAPI, two workers of one thread, bf16": Peer("fastapi", uvicorn("--workers", "2"), {"THREADS": "1", "DTYPE": "bfloat16"}),
    "infinity, torch": Peer("infinity", infinity(MODEL, "torch")),
    # It finds model.onnx in the current folder only, and gives the first token's vector unless told otherwise.
    "infinity, ONNX": Peer("infinity", infinity(".", "optimum", "--pooling-method", "mean"), folder=PEERS / "infinity" / "onnx"),
    "Ray Serve, two replicas": Peer("ray", ["bin/python", str(SERVERS / "ray_serve.py"), str(MODEL), "{port}"]),
}
OWN = "muster serve"
FIRST_TEXT = {"input": "a first text", "model": MODEL.name}


def skip_reason():
    if not any(peer.is_here() for peer in ALL.values()):
        return "benchmarks/serving/setup_peers.sh has not been run"
    return None if len(CORES) == 2 else "this machine has one core"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def tree_of(pid):
    """The process and all below it."""
    found, rest = [], [pid]
    while rest:
        found.append(rest.pop())
        for task in pathlib.Path(f"/proc/{found[-1]}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                rest += map(int, task.read_text().split())
    return found


def memory_of(pid):
    """MB of all processes: resident, and with what they share counted once."""
    sums = {"Rss": 0, "Pss": 0}
    for member in tree_of(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in pathlib.Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in sums:
                    sums[name] += int(value.split()[0]) * 1024 / 1e6
    return {"rss_mb": sums["Rss"], "pss_mb": sums["Pss"]}


def first_answer(process, url, since, body, limit_s):
    """Seconds from the start until a request has its answer."""
    while time.monotonic() - since < limit_s:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            request = urllib.request.Request(url, data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=limit_s) as answer:
                answer.read()
                return time.monotonic() - since
        except OSError:
            time.sleep(0.01)
    raise TimeoutError(f"no answer within {limit_s} s")


@contextlib.contextmanager
def started(name, words, variables=None, folder=ROOT, target="/v1/embeddings", body=FIRST_TEXT, limit_s=START_LIMIT_S):
    """The server on the two cores; its port, process and the seconds to its first answer, to `body`. All of it is ended at the end."""
    port = free_port()
    log = scratch(f"peer-{re.sub(r'[^A-Za-z0-9]+', '-', name)}.log")
    words = [word.replace("{port}", str(port)) for word in words]
    since = time.monotonic()
    with open(log, "wb") as sink:
        process = subprocess.Popen(["taskset", "-c", ",".join(map(str, CORES)), *words], cwd=folder, stdout=sink, stderr=sink,
                                   env={**os.environ, **(variables or {})}, start_new_session=True)
    try:
        yield port, process, first_answer(process, f"http://127.0.0.1:{port}{target}", since, body, limit_s)
    except (RuntimeError, TimeoutError) as error:
        raise RuntimeError(f"{name}: {error}: {log.read_text(errors='replace')[-1500:]}") from error
    finally:
        members = tree_of(process.pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
        for member in members:  # Ray's processes have sessions of their own
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        process.wait()


def start(name):
    if name == OWN:
        return started(name, [str(MUSTER), "serve", str(MODEL), "--devices", "2xcpu", "--no-cache-enabled",
                              "--listen", "127.0.0.1:{port}"])
    peer = ALL[name]
    program = str(PEERS / peer.environment / peer.words[0])
    return started(name, [program, *peer.words[1:]], {**QUIET, **peer.variables}, peer.folder)


def measure_one(name, bulk, single):
    """All figures of one server, from a start of its own."""
    with start(name) as (port, process, start_s):
        memory = memory_of(process.pid)
        server = types.SimpleNamespace(port=port)
        load.run(server, bulk, "--closed", seconds=2, connections=BULK_CONNECTIONS)  # its first seconds are warming up
        idle = load.run(server, single, "--rate", IDLE_RATE, seconds=SECONDS, connections=IDLE_CONNECTIONS)
        many = load.run(server, bulk, "--closed", seconds=SECONDS, connections=BULK_CONNECTIONS)
        alone = load.run(server, single, "--closed", seconds=SECONDS, connections=SINGLE_CONNECTIONS)
        for what, run in (("idle", idle), ("bulk", many), ("single", alone)):
            if run["ok"] == 0 or set(run["statuses"]) != {"200"}:
                raise RuntimeError(f"{name}, {what}: not every answer was a 200: {run}")
    return {"start_s": start_s, **memory, "idle_p50_ms": idle["p50_ms"], "idle_p99_ms": idle["p99_ms"],
            "bulk_texts_per_second": many["ok_per_second"] * BULK_TEXTS, "single_per_second": alone["ok_per_second"],
            "single_p50_ms": alone["p50_ms"]}


def measured(report, name, bulk, single):
    """The figures; None for a peer that does not answer, which is said, and leaves the others to compare with."""
    try:
        return measure_one(name, bulk, single)
    except RuntimeError as error:
        if name == OWN:
            raise
        report.raw.setdefault("not measured", {})[name] = str(error)
        print(f"  {name} could not be measured: {str(error)[:300]}")
        return None


def show(figures):
    print(f"  {'':42} {'start s':>8} {'RSS MB':>8} {'PSS MB':>8} {'p50 ms':>8} {'texts/s':>8} {'single/s':>8}")
    for name, of in figures.items():
        print(f"  {name:42} {of['start_s']:8.1f} {of['rss_mb']:8.0f} {of['pss_mb']:8.0f} {of['idle_p50_ms']:8.1f} "
              f"{of['bulk_texts_per_second']:8.0f} {of['single_per_second']:8.0f}")


def measure(report, arguments):
    load.build("serving_load", "muster", "muster-worker")
    bulk = load.write_bodies("peers-bulk.bodies", BULK_TEXTS, 1500, MODEL.name)
    single = load.write_bodies("peers-single.bodies", 1, 20000, MODEL.name)
    names = [OWN, *(name for name, peer in ALL.items() if peer.is_here())]
    rounds = []
    for _ in range(arguments.rounds):
        rounds.append({name: found for name in names if (found := measured(report, name, bulk, single))})
    names = [name for name in names if all(name in one for one in rounds)]
    figures = {name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]} for name in names}
    report.raw.update({"rounds": rounds, "missing": [name for name in ALL if name not in names], "cores": CORES})
    show(figures)
    own, peers = figures[OWN], [figures[name] for name in names[1:]]
    bulk_limit = BULK_WITH_AMX if machine.has_amx() else BULK_WITHOUT

    def times(key):
        return own[key] / max(peer[key] for peer in peers)
    report.add(at_least(f"{BULK_TEXTS} texts a request, {BULK_CONNECTIONS} connections: texts/s, times the best peer",
                        times("bulk_texts_per_second"), bulk_limit))
    report.add(at_least(f"single texts, {SINGLE_CONNECTIONS} connections: requests/s, times the best peer", times("single_per_second"), SINGLE))
    report.add(at_most(f"single texts, {IDLE_RATE}/s: p50, times the best peer",
                       own["idle_p50_ms"] / min(peer["idle_p50_ms"] for peer in peers), IDLE))
    report.add(at_most("start to first answer", own["start_s"], START_S, 2, " s"))
    for key, what in (("rss_mb", "resident memory"), ("pss_mb", "resident memory, shared pages once")):
        report.add(at_most(f"{what}, times the smallest peer", own[key] / min(peer[key] for peer in peers), MEMORY))
