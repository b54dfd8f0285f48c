"""From the start of a server or a command to its first token, and what all of its processes hold then and after 32 clients."""

import statistics
import subprocess
import time

from bench import peer_servers
from generate import closed_loop, contenders
from generate.class_bytes import bytes_of_a_place, bytes_per_token
from generate.reference import SMOLLM2
from programs import MUSTER
from report import at_most, holds, skipped
from serve import load
from serve.row16_peers import CORES, memory_of, started
from serve.running import Server

TITLE = "Start to first token; memory after the start and after 32 clients: one device, beside llama-server, OpenVINO, ONNX Runtime and vLLM"
IS_TIMED = True

CLIENTS, SECONDS = 32, 20
OWN, OWN_CLASS = "ours, 4-bit", "own"
PEERS = {"llama-server Q4_0": lambda: contenders.llama_server("Q4_0", CLIENTS), "OpenVINO int4": lambda: contenders.openvino("int4"),
         "ONNX Runtime int4": lambda: contenders.onnxruntime("int4"), "vLLM bf16": contenders.vllm}
NO_LOAD = ("ONNX Runtime int4",)  # it answers one after the other
ONCE = ("vLLM bf16",)             # it takes two minutes
BLOCK_TOKENS = 16                 # of keys and values: src/engine/ops/decoder_kernels.h
START_S, WEIGHTS_TIMES, ELSE_MB = 0.6, 1.3, 160
PROMPT_IDS = list(range(1000, 1016))

skip_reason = contenders.skip_reason


def one_start(name, peer, is_loaded, seed):
    """Seconds to the first token, memory then and, where it is loaded, after the clients and with the most places that they had in use."""
    body = {"model": peer.model, "prompt": PROMPT_IDS, "max_tokens": 1}
    with started(name, peer.words, peer.variables, target="/v1/completions", body=body,
                 limit_s=peer_servers.START_LIMIT_S) as (port, process, start_s):
        turn = contenders.Turn(name, peer, port, process, start_s)
        found = {"start_s": start_s, "pss_mb": memory_of(process.pid)["pss_mb"]}
        if is_loaded:
            requests, told = closed_loop.run(turn, CLIENTS, SECONDS, seed)
            found |= {"loaded_pss_mb": memory_of(process.pid)["pss_mb"], "places": requests.places_most(BLOCK_TOKENS), "failed": requests.failed, **told}
    return found


def command_start():
    """Seconds from the start of `muster generate` to the first byte of its reply."""
    start = time.monotonic()
    with subprocess.Popen(["taskset", "-c", ",".join(map(str, CORES)), str(MUSTER), "generate", str(SMOLLM2), "-p", "Once upon a time", "--raw",
                           "--max-tokens", "2", "--ignore-eos", "--quiet", "--devices", "1xcpu"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        is_there = bool(process.stdout.read(1))
        seconds = time.monotonic() - start
        process.stdout.read()
    if not is_there or process.returncode != 0:
        raise RuntimeError(f"muster generate ended with {process.returncode}")
    return seconds


def what_it_takes(peer):
    """The first start: it reads the file, and keeps whatever is measured once. The class that it computes in."""
    with contenders.up(OWN, peer) as turn:
        return load.served_precision(Server(turn.process, turn.port, None))


def one_untimed(name, peer):
    """Its files in the system's cache, as ours are."""
    try:
        with contenders.up(name, peer):
            pass
    except (RuntimeError, OSError):
        pass  # the timed start says it


def measure_all(report, peers, rounds):
    samples = {name: [] for name in peers}
    for index in range(rounds):
        for name, peer in peers.items():
            if name in ONCE and index > 0 or name not in samples:
                continue
            is_loaded = name not in NO_LOAD and (index == 0 or contenders.is_own(peer))
            try:
                samples[name].append(one_start(name, peer, is_loaded, index + 1))
            except (RuntimeError, OSError) as error:
                if contenders.is_own(peer):
                    raise
                report.add(skipped(name, str(error)[-400:]))
                del samples[name]
    return samples


def median(rows, key):
    values = [row[key] for row in rows if key in row]
    return statistics.median(values) if values else None


def show(samples):
    print(f"  {'':24} {'start s':>8} {'PSS MB':>8} {'after ' + str(CLIENTS) + ' clients':>18}")
    for name, rows in samples.items():
        after = median(rows, "loaded_pss_mb")
        print(f"  {name:24} {median(rows, 'start_s'):8.2f} {median(rows, 'pss_mb'):8.0f} {'-' if after is None else format(after, '.0f'):>18}",
              flush=True)


def measure(report, arguments):
    own = contenders.own()
    took = what_it_takes(own)
    report.add(holds("the class that a server takes by itself", took == OWN_CLASS, took, f"{OWN_CLASS}, the file's 4 bits"))
    peers = contenders.prepared(report, {OWN: lambda: own, **PEERS})
    for name, peer in peers.items():
        if name not in ONCE and name != OWN:
            one_untimed(name, peer)
    samples = measure_all(report, peers, arguments.rounds)
    commands = [command_start() for _ in range(arguments.rounds)]
    report.raw.update({"samples": samples, "command_s": commands})
    show(samples)
    rows = samples[OWN]
    report.add(at_most("a server's start to its first token, median", median(rows, "start_s"), START_S, unit=" s"))
    report.add(at_most("the same of muster generate", statistics.median(commands), START_S, unit=" s"))
    weights_mb = bytes_per_token(SMOLLM2, OWN_CLASS) / 1e6
    most_mb = WEIGHTS_TIMES * weights_mb + ELSE_MB
    words = f"{WEIGHTS_TIMES} x {weights_mb:.0f} MB of weights + {ELSE_MB} MB"
    report.add(at_most(f"PSS of all processes after the start ({words})", median(rows, "pss_mb"), round(most_mb), digits=0, unit=" MB"))
    kept_mb = median(rows, "places") * bytes_of_a_place(SMOLLM2) / 1e6
    report.add(at_most(f"the same after {CLIENTS} clients ({words}, and {kept_mb:.0f} MB of keys and values, the most blocks in use at once)",
                       median(rows, "loaded_pss_mb"), round(most_mb + kept_mb), digits=0, unit=" MB"))
    failed = sum(row["failed"] for row in rows)
    report.add(holds("requests of ours without an answer", failed == 0, str(failed), "0"))
