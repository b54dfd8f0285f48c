"""Every environment name of the documents, set to a second value: what is then otherwise, or what holds instead."""

import contextlib
import json
import os
import shutil
import subprocess
import time

from programs import MODEL, MUSTER, ROOT, scratch
from report import holds
from serve.running import serving

TITLE = "each environment name of the documents set to a second value: an observable difference, or a warning by name; document 3's environments start"
IS_TIMED = False

NAMES = ROOT / "src" / "config" / "testdata" / "foreign_names.txt"
ENVIRONMENTS = ROOT / "tests" / "cli" / "environments"

# name -> (second value, setting, what it must then be). The settings' defaults are the first values.
SETS = {
    "GPU_COUNT": ("2", "devices", "2xcuda"),
    "PRIMARY_GPU_ID": ("1", "devices", "cuda:1"),
    "SECONDARY_GPU_IDS": ("1,2", "devices", "cuda:1,cuda:2"),
    "MULTI_GPU_DEVICE_IDS": ("0,2", "devices", "cuda:0,cuda:2"),
    "CPU_ONLY_MODE": ("true", "devices", "cpu"),
    "WORKER_COUNT": ("1", "device_count_most", 1),
    "ENABLE_MULTI_GPU": ("false", "device_count_most", 1),
    "MULTI_GPU_ENABLED": ("false", "device_count_most", 1),
    "LOAD_BALANCING_STRATEGY": ("round_robin", "load_balancing_strategy", "round_robin"),
    "MULTI_GPU_STRATEGY": ("memory", "load_balancing_strategy", "memory_usage"),
    "MEMORY_THRESHOLD": ("70.0", "memory_threshold", 0.7),
    "GPU_MEMORY_FRACTION": ("0.9", "memory_threshold", 0.9),
    "ENABLE_TENSOR_CORES": ("false", "precision", "fp32"),
    "ENABLE_AMP": ("false", "precision", "fp32"),
    "TENSORRT_PRECISION": ("fp16", "precision", "fp16"),
    "EMBEDDING_MODEL": (str(MODEL), "models", [{"model": str(MODEL)}]),
    "EMBEDDING_CACHE_ENABLED": ("false", "cache_enabled", False),
    "EMBEDDING_CACHE_SIZE": ("10000", "cache_entries", 10000),
    "EMBEDDING_CACHE_TTL": ("3600", "cache_ttl", "3600s"),
    "EMBEDDING_CACHE_PERSISTENCE": ("cache.bin", "cache_file", "cache.bin"),
    "LOG_LEVEL": ("DEBUG", "log_level", "debug"),
    "MULTI_GPU_STATS_FILE": ("stats.jsonl", "stats_file", "stats.jsonl"),
    "MULTI_GPU_STATS_INTERVAL": ("5.0", "stats_interval", "5s"),
}
# name -> (a value that muster does not do, a word of what holds instead)
UNMET = {
    "ENABLE_MPS": ("true", "MPS"),
    "ENABLE_TF32": ("true", "--precision"),
    "ENABLE_NVLINK": ("true", "muster devices"),
    "NCCL_P2P_LEVEL": ("NVL", "NCCL"),
    "WORKER_ID": ("2", "--devices"),
    "MASTER_HOST": ("master", "--devices"),
    "MASTER_ADDR": ("10.0.0.1", "--devices"),
    "MASTER_PORT": ("8001", "--devices"),
    "WORLD_SIZE": ("2", "--devices"),
    "RANK": ("1", "--devices"),
    "DISABLE_GPU_CHECK": ("true", "--devices"),
    "ENABLE_CONTINUOUS_LEARNING": ("true", "least_work"),
    "ENABLE_REINFORCEMENT_LEARNING": ("true", "least_work"),
    "CONTINUOUS_LEARNING_STORAGE_PATH": ("/tmp/learning", "least_work"),
    "EXPLORATION_RATE": ("0.3", "least_work"),
    "LEARNING_RATE": ("0.2", "least_work"),
    "ENABLE_T4_OPTIMIZATION": ("true", "--precision"),
    "ENABLE_CUDNN_BENCHMARK": ("true", "cuDNN"),
    "ENABLE_METRICS": ("false", "/metrics"),
    "METRICS_PORT": ("9090", "/metrics"),
    "EXPOSE_WORKER_METRICS": ("false", "/metrics"),
    "ENABLE_DYNAMIC_BATCHING": ("false", "--batch-tokens"),
    "EMBEDDING_BATCH_SIZE": ("64", "--batch-tokens"),
    "MAX_BATCH_SIZE": ("128", "--batch-tokens"),
    "AUTO_TUNE_*": ("true", "--batch-time"),
    "USE_TENSORRT": ("true", "--precision"),
    "TENSORRT_CACHE_DIR": ("/tmp/engines", "--precision"),
    "TENSORRT_INT8_CALIBRATION": ("true", "--precision"),
    "TENSORRT_INT8_CALIBRATION_CACHE": ("/tmp/calibration", "--precision"),
    "TENSORRT_*": ("4096", "--precision"),
    "ARROW_FLIGHT_*": ("8815", "HTTP"),
    "HANA_*": ("secret", "no client of a database"),
}
# Names whose values cannot both be meant: both must be named.
DISAGREE = [
    {"MEMORY_THRESHOLD": "80", "GPU_MEMORY_FRACTION": "0.9"},
    {"LOAD_BALANCING_STRATEGY": "round_robin", "MULTI_GPU_STRATEGY": "auto"},
    {"MULTI_GPU_DEVICE_IDS": "0,1", "PRIMARY_GPU_ID": "1"},
    {"GPU_COUNT": "2", "SECONDARY_GPU_IDS": "1,2,3"},
    {"MULTI_GPU_ENABLED": "false", "WORKER_COUNT": "3"},
    {"ENABLE_TENSOR_CORES": "false", "TENSORRT_PRECISION": "fp16"},
]


def listed_names():
    lines = NAMES.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def plain_environment(**more):
    """None of the names but `more`."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "MUSTER_TORCH_ROOT", "MUSTER_CACHE_DIR") if name in os.environ}
    return {**kept, **more}


@contextlib.contextmanager
def only(environment):
    """This process's environment is `environment` for a while, for what `serving` hands on."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(environment)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def run(words, environment):
    return subprocess.run([str(MUSTER), *words], env=environment, cwd=scratch("."), capture_output=True, text=True, timeout=60)


def config(environment):
    done = run(["config", "--json"], environment)
    return json.loads(done.stdout) if done.returncode == 0 else None


def concrete(name, value):
    """A name that a pattern stands for."""
    return {name.replace("*", "ANYTHING"): value}


def show_names(report):
    first = config(plain_environment())
    table = []
    for name, (value, setting, wanted) in SETS.items():
        now = (config(plain_environment(**{name: value})) or {}).get(setting, {})
        is_so = now.get("value") == wanted != first[setting]["value"] and now.get("place") == name
        table.append((name, value, is_so, f"{setting}: {first[setting]['value']} -> {now.get('value')}"))
    for name, (value, word) in UNMET.items():
        named = concrete(name, value)
        done = run(["config"], plain_environment(**named))
        said = done.stderr.strip()
        is_so = done.returncode == 0 and said.count("\n") == 0 and next(iter(named)) in said and word in said
        table.append((name, value, is_so, said.removeprefix("muster: ")))
    width = max(len(name) for name, *_ in table)
    for name, value, is_so, what in table:
        print(f"    {name:<{width}}  {'' if is_so else 'MISS: '}{what}")
    report.raw["names"] = [{"name": name, "value": value, "as_it_must_be": is_so, "what": what} for name, value, is_so, what in table]
    missing = sorted(set(listed_names()) - {name for name, *_ in table})
    report.add(holds("names of the documents that were tried", not missing, f"{len(table)}, missing {missing or 'none'}", "all"))
    changed = [name for name, *_ in table if name in SETS]
    good = [name for name, _, is_so, _ in table if is_so]
    report.add(holds("names that set something", all(name in good for name in SETS), f"{len(set(changed) & set(good))} of {len(SETS)}", "all"))
    report.add(holds("names that are not met: a warning says what holds", all(name in good for name in UNMET),
                     f"{len(set(UNMET) & set(good))} of {len(UNMET)}", "all"))


def show_disagreements(report):
    both_named = []
    for names in DISAGREE:
        said = run(["config"], plain_environment(**names)).stderr
        both_named.append(all(name in said for name in names) and "disagree" in said)
        report.raw.setdefault("disagree", []).append(said.strip())
    report.add(holds("pairs that disagree: both are named", all(both_named), f"{sum(both_named)} of {len(DISAGREE)}", "all"))


def metric(server, name, label=""):
    for line in server.get("/metrics")[1].decode().splitlines():
        if line.startswith(name) and line[len(name)] in "{ " and label in line:
            return float(line.rsplit(" ", 1)[1])
    return None


def settings_of(server):
    return {name: setting["value"] for name, setting in json.loads(server.get("/v1/config")[1]).items()}


def device_count(server):
    return len(json.loads(server.get("/v1/devices")[1])["devices"])


def cached(server):
    """Hits after the same text was asked for twice, as the answers of the server count them."""
    before = metric(server, "muster_cache_lookups_total", '"hit"') or 0
    server.embed(["twice the same"])
    server.embed(["twice the same"])
    return (metric(server, "muster_cache_lookups_total", '"hit"') or 0) - before


def wait_for(condition, limit_s):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def show_behaviour(report):
    """The same server without and with the names: what it does is otherwise."""
    folder = scratch("row15")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with only(plain_environment()), serving(MODEL, "--devices", "2xcpu", name="row15-plain") as server:
        plain = {"devices": device_count(server), "hits": cached(server), "settings": settings_of(server)}
    stats, cache = folder / "stats.jsonl", folder / "cache.bin"
    names = {"MULTI_GPU_ENABLED": "false", "EMBEDDING_CACHE_ENABLED": "false", "LOAD_BALANCING_STRATEGY": "round_robin",
             "MULTI_GPU_STATS_FILE": str(stats), "MULTI_GPU_STATS_INTERVAL": "0.2", "MEMORY_THRESHOLD": "70", "LOG_LEVEL": "debug",
             "ENABLE_AMP": "false"}
    with only(plain_environment(**names)), serving(MODEL, "--devices", "2xcpu", name="row15-names") as server:
        set_so = {"devices": device_count(server), "hits": cached(server), "settings": settings_of(server)}
        has_stats = wait_for(lambda: stats.exists() and len(stats.read_text().splitlines()) >= 3, 5)
        reasons = {decision["reason"] for decision in json.loads(server.get("/v1/decisions")[1])["decisions"]}
        served = json.loads(server.get("/v1/models")[1])
    report.raw["plain"], report.raw["set"], report.raw["reasons"], report.raw["models"] = plain, set_so, sorted(reasons), served
    report.add(holds("MULTI_GPU_ENABLED=false: devices of /v1/devices", (plain["devices"], set_so["devices"]) == (2, 1),
                     f"{plain['devices']} -> {set_so['devices']}", "2 -> 1"))
    report.add(holds("EMBEDDING_CACHE_ENABLED=false: hits of a repeated text", plain["hits"] >= 1 and set_so["hits"] == 0,
                     f"{plain['hits']:.0f} -> {set_so['hits']:.0f}", ">= 1 -> 0"))
    report.add(holds("LOAD_BALANCING_STRATEGY=round_robin: reasons of /v1/decisions", any("its turn" in reason for reason in reasons),
                     "; ".join(sorted(reasons))[:100], "its turn, of 1 devices"))
    lines = [json.loads(line) for line in stats.read_text().splitlines()] if stats.exists() else []
    report.add(holds("MULTI_GPU_STATS_FILE, _INTERVAL=0.2: lines", has_stats and all("timestamp" in line and "devices" in line for line in lines),
                     f"{len(lines)} lines of JSON", ">= 3 within 5 s"))
    shown = {name: set_so["settings"][name] for name in ("memory_threshold", "log_level", "precision", "stats_interval")}
    report.add(holds("MEMORY_THRESHOLD, LOG_LEVEL, ENABLE_AMP in /v1/config",
                     shown == {"memory_threshold": 0.7, "log_level": "debug", "precision": "fp32", "stats_interval": "200ms"},
                     json.dumps(shown), "as set"))
    names = {"EMBEDDING_MODEL": str(MODEL), "EMBEDDING_CACHE_PERSISTENCE": str(cache), "EMBEDDING_CACHE_SIZE": "2", "WORKER_COUNT": "1"}
    with only(plain_environment(**names)), serving("--devices", "2xcpu", name="row15-model") as server:
        server.embed([f"text {i}" for i in range(5)])
        entries, devices = metric(server, "muster_cache_entries"), device_count(server)
        models = [model["id"] for model in json.loads(server.get("/v1/models")[1])["data"]]
    report.add(holds("EMBEDDING_MODEL: what is served without a word on the command line", models == [MODEL.name], ", ".join(models), MODEL.name))
    report.add(holds("EMBEDDING_CACHE_SIZE=2: entries after 5 texts", entries == 2, f"{entries}", "2"))
    report.add(holds("EMBEDDING_CACHE_PERSISTENCE: the file", cache.exists(), f"{cache.stat().st_size if cache.exists() else 0} bytes", "there"))
    report.add(holds("WORKER_COUNT=1 of 2xcpu: devices", devices == 1, f"{devices}", "1"))


def document_environment(name, folder):
    """A file of tests/cli/environments as compose and a shell read it; the document's /app is `folder`."""
    values = {}
    for line in (ENVIRONMENTS / f"{name}.env").read_text().splitlines():
        assignment = line.removeprefix("export ").split("#")[0].strip()
        if "=" in assignment:
            variable, value = assignment.split("=", 1)
            values[variable] = value.replace("/app/", f"{folder}/") if value.startswith("/app/") else value
    # The document's model may not be here; which one is served does not matter to the environment.
    if "EMBEDDING_MODEL" in values:
        values["EMBEDDING_MODEL"] = str(MODEL)
    return values


def show_documents(report):
    """Document 3's .env and its three scenarios: each starts the server, which answers."""
    folder = scratch("row15-document")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    started = []
    for name in ("sample", "throughput", "latency", "balanced"):
        values = document_environment(name, folder)
        words = [] if "EMBEDDING_MODEL" in values else [MODEL]
        with only(plain_environment(**values)), serving(*words, "--devices", "2xcpu", name=f"row15-{name}") as server:
            if server.embed(["a text"]):
                started.append(name)
    report.raw["documents"] = started
    report.add(holds("document 3: .env and scenarios that start the server and are answered", len(started) == 4, ", ".join(started), "all 4"))


def measure(report, arguments):
    show_names(report)
    show_documents(report)
    show_disagreements(report)
    show_behaviour(report)
