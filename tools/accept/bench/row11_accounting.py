"""Where the time of a request goes: 20 ms that are planted in each stage, one after the other, are found in that stage and in no other."""

import json
import pathlib
import signal
import statistics
import subprocess
import time

from bench import running
from bench.planted import PlantedServer
from bench.sweeps import TINY
from programs import MUSTER, kill, scratch
from report import at_most, holds, skipped
from serve.running import serving
from serve.watching import FAULTY_WORKER

TITLE = "20 ms planted in each stage: the parts add up to the wall within 2 %, and each delay is in its stage"
IS_TIMED = True

DELAY_S, TOLERANCE_S, SUM_PERCENT = 0.020, 0.001, 2
REQUESTS = 60
PARTS = ("connection_wait", "lag", "sending", "first_byte_wait", "receiving")
STAGES = ("tokenize", "prefill", "compute")  # any names: those of Server-Timing
STAGE_S = 0.002                              # of a stage without the delay
PAIR_S, BETWEEN_S = 0.1, 0.0002              # two requests each so long after another: the second comes behind the first
RATE = 10                                    # of requests for which the generator itself is stopped
WORDS = 12


def trial_of(result):
    return result["points"][0]["trials"][0]


def column(samples, part):
    return [ns / 1e9 for ns in samples[f"{part}_ns"]]


def medians(samples, first=0, step=1):
    """The median of each part over every `step`-th request."""
    return {part: statistics.median(column(samples, part)[first::step]) for part in PARTS}


def check_sums(report, what, result, wall_s=None):
    """The parts of each request are its latency; those of all requests of a client that never rests are the time that the server saw go by."""
    trial = trial_of(result)
    samples = trial["samples"]
    sums = [sum(parts) for parts in zip(*(column(samples, part) for part in PARTS))]
    worst = max(abs(total / latency - 1) for total, latency in zip(sums, column(samples, "latency")))
    mean = abs(sum(trial["parts"].values()) / trial["latency"]["mean"]["value"] - 1)
    report.add(at_most(f"{what}: parts against the latency, the worst request and the mean", 100 * max(worst, mean), SUM_PERCENT, 3, " %"))
    if wall_s is not None:
        report.add(at_most(f"{what}: parts against the server's clock", 100 * abs(sum(sums) / wall_s - 1), SUM_PERCENT, 3, " %"))


def check_gains(report, what, part, before, after, delay_s):
    """What the delay has made longer. The parts are those of requests without and with it."""
    gains = {name: after[name] - before[name] for name in PARTS}
    report.raw.setdefault("gains", {})[what] = {"planted": part, "seconds": delay_s, **gains}
    report.add(holds(f"{what}: in {part}", abs(gains[part] - delay_s) <= TOLERANCE_S, f"{1000 * gains[part]:.2f} ms",
                     f"{1000 * delay_s:.2f} ms, within {1000 * TOLERANCE_S:.0f} ms"))
    name, most = max(((name, abs(gain)) for name, gain in gains.items() if name != part), key=lambda one: one[1])
    report.add(holds(f"{what}: in no other part", most <= TOLERANCE_S, f"{1000 * most:.2f} ms in {name}",
                     f"at most {1000 * TOLERANCE_S:.0f} ms"))


def check_every_second(report, what, part, result, delay_s=DELAY_S):
    samples = trial_of(result)["samples"]
    check_gains(report, what, part, medians(samples, 0, 2), medians(samples, 1, 2), delay_s)


def large_body():
    """A file with one body that is longer than what the kernel takes for a client at most."""
    most = int(pathlib.Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])
    file = scratch("accounting-body.txt")
    file.write_text("x" * (most + (4 << 20)) + "\n")
    return file


def measure_server_places(report):
    """The server does not read, does not answer, does not go on."""
    body = large_body()
    for place, part, words in (("reading", "sending", ("--input", body)), ("head", "first_byte_wait", ()), ("body", "receiving", ())):
        with PlantedServer(place) as server:
            result, _ = running.measure("http", server.url, "--clients", 1, "--requests", REQUESTS, "--warm-up", "none", *words)
        what = f"a server that is late with its {place}"
        if len(server.delays) != REQUESTS:
            raise RuntimeError(f"{what}: {len(server.delays)} requests came, and {REQUESTS} were asked for")
        check_sums(report, what, result, server.last - server.first)
        check_every_second(report, what, part, result, statistics.median(server.delays[1::2]) - statistics.median(server.delays[::2]))
    body.unlink()


def pairs():
    """A trace in which every second request comes while the one before it is being answered."""
    file = scratch("accounting-pairs.txt")
    file.write_text("".join(f"{PAIR_S * i:.4f}\n{PAIR_S * i + BETWEEN_S:.4f}\n" for i in range(REQUESTS // 2)))
    return file


def measure_waits(report):
    """No connection is free; the server has another request to serve first."""
    words = ("--trace", pairs(), "--warm-up", "none")
    waits_s = DELAY_S - BETWEEN_S
    with running.null_server("--stage", f"work={DELAY_S}") as url:
        result, _ = running.measure("http", f"{url}/", "--connections", 1, *words)
    check_sums(report, "one connection for two", result)
    check_every_second(report, "one connection for two", "connection_wait", result, waits_s)
    with running.null_server("--law", "deterministic", "--mean", DELAY_S) as url:
        result, _ = running.measure("http", f"{url}/", "--connections", 4, *words)
    check_sums(report, "a queue at the server", result)
    check_every_second(report, "a queue at the server", "first_byte_wait", result, waits_s)
    stages = {name: [ns / 1e9 for ns in values] for name, values in trial_of(result)["samples"]["server_stages_ns"].items()}
    gains = {name: statistics.median(values[1::2]) - statistics.median(values[::2]) for name, values in stages.items()}
    report.add(holds("a queue at the server: of its stages in queue alone",
                     abs(gains["queue"] - waits_s) <= TOLERANCE_S and abs(gains["service"]) <= TOLERANCE_S,
                     ", ".join(f"{name} {1000 * gain:+.2f} ms" for name, gain in gains.items()), f"queue {1000 * waits_s:+.2f} ms"))


def measure_stages(report):
    """What the server itself says of its stages."""
    for late in STAGES:
        planted = {name: STAGE_S + (DELAY_S if name == late else 0) for name in STAGES}
        words = [word for name, time_s in planted.items() for word in ("--stage", f"{name}={time_s}")]
        with running.null_server(*words) as url:
            result, _ = running.measure("http", f"{url}/", "--clients", 1, "--requests", REQUESTS, "--warm-up", "none")
        trial = trial_of(result)
        told = {name: trial["server_stages"].get(name, 0) for name in STAGES}
        report.add(holds(f"a server that is late with {late}", all(abs(told[name] - planted[name]) < 1e-6 for name in STAGES),
                         ", ".join(f"{name} {1000 * told[name]:.2f} ms" for name in STAGES),
                         ", ".join(f"{name} {1000 * planted[name]:.2f} ms" for name in STAGES)))
        waited = medians(trial["samples"])["first_byte_wait"]
        report.add(at_most(f"a server that is late with {late}: its stages against the wait for its first byte",
                           100 * abs(sum(trial["server_stages"].values()) / waited - 1), SUM_PERCENT, 2, " %"))


def measure_nonsense(report):
    """A server that says of its stages what cannot be: a second of which nobody saw anything, and a time below zero."""
    with PlantedServer(timing="work;dur=1000, queue;dur=-3") as server:
        code, printed, said = running.bench("http", server.url, "--clients", 1, "--requests", REQUESTS, "--warm-up", "none")
    words = " ".join(printed.split())
    report.add(holds("stages that cannot be are told, and leave no negative time",
                     code in (0, running.LATE) and f"in {REQUESTS} of {REQUESTS} answers the server's stages are longer" in words and
                     f"{REQUESTS} of the times that the server reports are none" in words and "elsewhere" not in words,
                     words[-300:] or said[-300:]))


def measure_stream(report):
    """The second token comes later."""
    parts = {}
    for gap_s in (STAGE_S, STAGE_S + DELAY_S):
        with running.null_server("--token-gap", gap_s) as url:
            result, _ = running.measure("generate", url, "--model", "null", "--completions", "--output-tokens", 2, "--prompt-words", WORDS,
                                        "--clients", 1, "--requests", REQUESTS, "--warm-up", "none")
        parts[gap_s] = medians(trial_of(result)["samples"])
    check_sums(report, "a stream with a late token", result)
    check_gains(report, "a stream with a late token", "receiving", parts[STAGE_S], parts[STAGE_S + DELAY_S], DELAY_S)


def sleep_until(moment):
    time.sleep(max(0.0, moment - time.monotonic()))


def stop_for_every_second(process, server):
    """Stops the generator from before each second request is due until 20 ms after it; the seconds after it."""
    end = time.monotonic() + 30
    while server.first is None and process.poll() is None and time.monotonic() < end:
        time.sleep(0.0005)
    if server.first is None:
        raise RuntimeError(f"no request came: {process.communicate(timeout=30)[1][-400:]}")
    late = []
    for number in range(1, REQUESTS, 2):
        due = server.first + number / RATE
        sleep_until(due - DELAY_S)
        kill(process.pid, signal.SIGSTOP)
        sleep_until(due + DELAY_S)
        kill(process.pid, signal.SIGCONT)
        late.append(time.monotonic() - due)
    return late


def measure_generator(report):
    """The generator itself is late: what it measures then is its own doing, and it says so."""
    out = scratch("accounting-lag.json")
    out.unlink(missing_ok=True)
    with PlantedServer() as server:
        process = subprocess.Popen([str(MUSTER), "bench", "http", server.url, "--rate", str(RATE), "--arrivals", "constant", "--requests",
                                    str(REQUESTS), "--warm-up", "none", "-o", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            late = stop_for_every_second(process, server)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
            process.wait()
    if not out.exists():
        raise RuntimeError(f"muster bench ended with {process.returncode}: {said[-400:]}")
    result = json.loads(out.read_text())
    samples = trial_of(result)["samples"]
    # The first request, by which the others are due, was here so long after it was meant to be sent.
    offset_s = (samples["lag_ns"][0] + samples["sending_ns"][0]) / 1e9
    check_sums(report, "a generator that is stopped", result)
    check_every_second(report, "a generator that is stopped", "lag", result, statistics.median(late) + offset_s)
    report.add(holds("a generator that is stopped: the run is declared invalid", process.returncode == running.LATE and not result["valid"],
                     f"exit code {process.returncode}, valid: {result['valid']}", f"exit code {running.LATE}"))


def own_server(us_per_token):
    """The samples of a run against `muster serve` whose device takes so long."""
    faults = {"FAULTY_WORKER": json.dumps({"cpu:0": {"batch_us_per_token": us_per_token}})}
    with serving(TINY, "--devices", "1xcpu", "--no-cache-enabled", "--worker-program", FAULTY_WORKER, environment=faults,
                 name="bench-accounting") as server:
        result, _ = running.measure("embed", server.url, "--prompt-words", WORDS, "--clients", 1, "--requests", REQUESTS, "--warm-up", "none")
    return result


def measure_device(report):
    """muster serve, and a device that takes longer for each token."""
    what = "muster serve with a device that is late"
    if not FAULTY_WORKER.exists():
        report.add(skipped(what, "muster-worker-faulty is not built (./test builds it)"))
        return
    before = own_server(0)
    us_per_token = round(1e6 * DELAY_S / statistics.mean(trial_of(before)["samples"]["input_tokens"]))
    after = own_server(us_per_token)
    samples = trial_of(after)["samples"]
    check_sums(report, what, after)
    check_gains(report, what, "first_byte_wait", medians(trial_of(before)["samples"]), medians(samples),
                statistics.median(samples["input_tokens"]) * us_per_token / 1e6)


def measure(report, arguments):
    measure_generator(report)
    measure_waits(report)
    measure_server_places(report)
    measure_stages(report)
    measure_nonsense(report)
    measure_stream(report)
    measure_device(report)
