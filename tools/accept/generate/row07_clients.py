"""Eight and 32 clients that ask one after the other, ours and the peers in turn, by one instrument."""

import contextlib
import re
import statistics

from bench.running import percentile
from generate import closed_loop, contenders, speeds
from programs import scratch
from report import at_most, holds, skipped

TITLE = "8 and 32 clients, log-normal prompts and outputs: OpenVINO, vLLM, llama-server and ours in the same run, caches off"
IS_TIMED = True

CLIENTS, SECONDS = (8, 32), {8: 15, 32: 20}  # of sending: the answers behind that take as long again of 32
EXACT, INT8, FILE = "ours, bf16", "ours, int8", "ours, the file's own bits"
OWN = {EXACT: "bf16", INT8: "int8", FILE: "own"}
ONCE = (FILE,)  # no demand is made of it: shown, in one round
PEERS = {"OpenVINO int8": lambda: contenders.openvino("int8"), "OpenVINO bf16": lambda: contenders.openvino("bf16"),
         "vLLM bf16": contenders.vllm, "llama-server BF16": lambda: contenders.llama_server("BF16", max(CLIENTS))}
EXACT_RATIO, INT8_RATIO, FEW_RATIO = 1.6, 2.2, 1.5
FIRST_TOKEN_S = 1.0

skip_reason = contenders.skip_reason


def trial(report, turn, clients, seed):
    """What it found is in the report at once: half an hour must not be lost with the last trial."""
    if turn.is_gone():
        raise RuntimeError(f"{turn.name} has ended with {turn.process.returncode}: {log_of(turn)}")
    with turn.awake():
        requests, told = closed_loop.run(turn, clients, SECONDS[clients], seed)
    if requests.tokens_per_s() <= 0:
        raise RuntimeError(f"{turn.name}: the first prompts were in after {requests.settled_at():.1f} s, and {SECONDS[clients]} s are sent in")
    found = {"tokens_per_s": requests.tokens_per_s(), "first_token_s": requests.first_token_seconds(), "failed": requests.failed,
             "answered": len(requests.all), **told}
    if requests.failed:
        found["log"] = log_of(turn)
    report.raw.setdefault(f"{clients} clients", {}).setdefault(turn.name, []).append(found)
    return found


def log_of(turn):
    """The last of what it said: scratch() as serve.row16_peers.started has it."""
    path = scratch(f"peer-{re.sub(r'[^A-Za-z0-9]+', '-', turn.name)}.log")
    return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def first_token_p99(samples):
    """Over the requests of all rounds."""
    return percentile([each for one in samples for each in one["first_token_s"]], 0.99)


def show(clients, samples):
    print(f"  {clients} clients {'':22} {'tok/s':>8} {'TTFT p50':>9} {'p99 ms':>8} {'answers':>8} {'failed':>7}")
    for name, rows in samples.items():
        firsts = [each for one in rows for each in one["first_token_s"]]
        print(f"  {name:32} {statistics.median(one['tokens_per_s'] for one in rows):8.0f} {statistics.median(firsts) * 1e3:9.0f} "
              f"{first_token_p99(rows) * 1e3:8.0f} {sum(one['answered'] for one in rows):8} {sum(one['failed'] for one in rows):7}", flush=True)


def add_first_tokens(report, clients, samples):
    peers = {name: first_token_p99(samples[name]) for name in PEERS if name in samples}
    for name in (EXACT, INT8):
        p99 = first_token_p99(samples[name])
        report.add(at_most(f"{name}, {clients} clients: p99 to the first token, the first {clients} prompts left out", p99, FIRST_TOKEN_S, unit=" s"))
        what = f"{name}, {clients} clients: that p99 against the best peer's"
        if peers:
            best = min(peers, key=peers.get)
            report.add(at_most(f"{what} ({best}, {peers[best]:.2f} s)", p99 / peers[best], 1.0, unit="x"))
        else:
            report.add(skipped(what, "there is no peer"))


def add_rates(report, clients, samples):
    if clients == max(CLIENTS):
        speeds.add_ratio(report, f"{clients} clients: exact class (bf16)", samples, EXACT, PEERS, EXACT_RATIO)
        speeds.add_ratio(report, f"{clients} clients: int8 class", samples, INT8, PEERS, INT8_RATIO)
    else:
        better = speeds.fastest(samples, (EXACT, INT8))
        speeds.add_ratio(report, f"{clients} clients: our better class ({better})", samples, better, PEERS, FEW_RATIO)


def measure(report, arguments):
    with contextlib.ExitStack() as stack:
        turns = contenders.all_up(stack, report, contenders.prepared(report, contenders.makers(OWN, PEERS)))
        peers = [name for name, turn in turns.items() if not turn.is_own]
        for clients in CLIENTS:
            once = {name: [trial(report, turns[name], clients, 1)] for name in ONCE}
            # The same requests for all of a round, others in each.
            each = [name for name in turns if name not in ONCE]
            seeds = {name: iter(range(1, arguments.rounds + 1)) for name in each}
            samples = speeds.interleave(report, {name: (lambda n=name: trial(report, turns[n], clients, next(seeds[n]))) for name in each},
                                        arguments.rounds, peers)
            show(clients, {**samples, **once})
            failed = sum(one["failed"] for name in OWN for one in {**samples, **once}[name])
            report.add(holds(f"{clients} clients: requests of ours without an answer", failed == 0, str(failed), "0"))
            for name in peers:
                broken = sum(one["failed"] for one in samples.get(name, []))
                if broken:
                    print(f"  note  {name}: {broken} requests without an answer; what came of them counts for it", flush=True)
            add_rates(report, clients, samples)
            add_first_tokens(report, clients, samples)
