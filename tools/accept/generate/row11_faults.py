"""Workers killed in the middle of streams, prompts that are too long, clients that go, and too many requests at once."""

import os
import random
import signal
import threading
import time

from generate.replies import OPENINGS, skip_reason
from generate.streams import ask, ask_all, decoder_server, metric
from programs import children_of
from report import at_least, at_most, holds

TITLE = "kill -9 in the middle of 16 streams, ten times; a prompt beyond the context; clients that go; 200 at once; 3x overload"
IS_TIMED = True

ONE_CPU = ("--devices", "1xcpu")
STREAMS, KILLS, TOKENS = 16, 10, 64
SHARES = (0.05, 0.7)  # of all tokens that are there when the worker is killed
MIDST_S = 120         # until so many are there
TOKENS_METRIC = "muster_generation_tokens_total"
BURST = 200
CLOSED_CLIENTS, LOAD_S, LOAD_TOKENS, OVERLOAD = 32, 30, 32, 3


def wait_until(is_so, limit_s):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if is_so():
            return True
        time.sleep(0.01)
    return False


def is_quiet(server):
    return metric(server, "muster_generation_running") == 0 and metric(server, "muster_generation_waiting") == 0


def busiest(server):
    """The worker that holds most memory: the one with the model."""
    def resident(pid):
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1])
    return max(children_of(server.process.pid), key=resident)


def kill_in_the_middle(report, server, prompts, alone, shares, **fields):
    """Each time once a share of all tokens is there: whoever is killed then has streams. alone: replies to the prompts, undisturbed."""
    unanswered = [reply.error or reply.status for reply in alone if not reply.is_whole()]
    if unanswered:
        report.add(holds("streams without a kill: not whole", False, f"{len(unanswered)} {unanswered[:1]}", "0"))
        return
    all_tokens = sum(reply.usage["completion_tokens"] for reply in alone)
    broken, different, kills, gaps = [], 0, 0, []
    for share in shares:
        before = metric(server, TOKENS_METRIC)
        threads, found = ask_all(server, prompts, **fields)
        is_midst = wait_until(lambda: metric(server, TOKENS_METRIC) - before >= share * all_tokens, MIDST_S)
        is_under_way = is_midst and any(thread.is_alive() for thread in threads)
        if is_under_way:
            os.kill(busiest(server), signal.SIGKILL)
        for thread in threads:
            thread.join()
        kills += is_under_way
        broken += [reply.error or reply.finish for reply in found if not reply.is_whole()]
        different += sum(reply.text != undisturbed.text for reply, undisturbed in zip(found, alone))
        gaps += [max(reply.gap(), reply.first_s() or 0.0) for reply in found]
        if not is_midst:
            break  # it computes nothing: the checks below say so
    report.raw["kills"] = {"shares": shares, "gaps_s": sorted(gaps), "broken": broken, "longest gap_s": max(gaps)}
    report.add(at_least("kills while streams were under way", kills, len(shares), 0))
    report.add(holds(f"of {len(gaps)} streams not whole", not broken, f"{len(broken)} {broken[:1] or ''}", "0"))
    report.add(holds("texts that differ from the undisturbed", different == 0, f"{different}", "0"))
    report.add(holds("the longest wait of a stream, the worker's death in it", max(gaps) > 0, f"{max(gaps):.2f} s",
                     f"stated (1 s + load + prefill of {len(prompts)})"))


def kills_on_a_cpu(report, generator):
    prompts = OPENINGS[:STREAMS]
    shares = [generator.uniform(*SHARES) for _ in range(KILLS)]
    with decoder_server("--devices", "1xcpu", "--cores-per-device", "2", name="generate-kill") as server:
        alone = [ask(server, prompt, max_tokens=TOKENS) for prompt in prompts]
        kill_in_the_middle(report, server, prompts, alone, shares, max_tokens=TOKENS)


def prompt_too_long(report, words=ONE_CPU, **options):
    with decoder_server(*words, name="generate-long", **options) as server:
        reply = ask(server, "word " * 20_000, max_tokens=4)
        report.add(holds("a prompt beyond the context", reply.status == 400, f"{reply.status} {(reply.error or {}).get('message', '')[:120]}", "400"))
        after = ask(server, OPENINGS[0], max_tokens=4)
        report.add(holds("the server goes on", after.is_whole(), f"{after.status} {after.finish}"))


def clients_go(report, words=ONE_CPU, quiet_s=1.0, **options):
    """quiet_s: more than a step takes."""
    with decoder_server(*words, name="generate-gone", **options) as server:
        ask(server, OPENINGS[0], max_tokens=4)
        threads, _ = ask_all(server, OPENINGS[:8], pieces_most=3, max_tokens=2000, ignore_eos=True)
        for thread in threads:
            thread.join()
        gone = time.monotonic()
        is_free = wait_until(lambda: is_quiet(server), 5 * quiet_s)
        report.add(at_most("after eight clients went, until nothing runs", time.monotonic() - gone if is_free else 99, quiet_s, 2, " s"))
        computed = metric(server, TOKENS_METRIC)
        time.sleep(0.5)  # nothing may happen in it
        later = metric(server, TOKENS_METRIC)
        report.add(holds("tokens computed for nobody after that", later == computed, f"{later - computed:.0f}", "0"))


def burst(report):
    with decoder_server("--devices", "2xcpu", name="generate-burst") as server:
        ask(server, OPENINGS[0], max_tokens=4)
        threads, replies = ask_all(server, [f"{i}: {OPENINGS[i % len(OPENINGS)]}" for i in range(BURST)], max_tokens=16)
        for thread in threads:
            thread.join()
    refused = [reply for reply in replies if reply.status == 429]
    answered = [reply for reply in replies if reply.is_whole()]
    first = sorted(reply.first_s() for reply in answered if reply.times)
    report.raw["burst"] = {"first_s": first, "refused": len(refused)}
    others = [(reply.status, reply.error) for reply in replies if reply not in refused and reply not in answered]
    report.add(holds(f"{BURST} at once: neither answered nor told to come again", not others, f"{len(others)} {others[:1] or ''}", "0"))
    said = [reply for reply in refused if not getattr(reply, "retry_after", None)]
    report.add(holds("refused without Retry-After", not said, f"{len(said)} of {len(refused)}", "0"))
    report.add(holds("first token of those let in, the last", bool(first), f"{first[-1]:.1f} s of {len(first)}" if first else "none", "stated"))


def closed_loop(server, seconds):
    """Requests a second that CLOSED_CLIENTS clients get answered, each asking again at once."""
    end, counts = time.monotonic() + seconds, []

    def client(index):
        done = 0
        while time.monotonic() < end:
            done += ask(server, f"{index} {done}: {OPENINGS[index % len(OPENINGS)]}", max_tokens=LOAD_TOKENS, ignore_eos=True).is_whole()
        counts.append(done)

    begin = time.monotonic()
    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLOSED_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - begin)


def overload(report, generator):
    """Poisson arrivals of OVERLOAD times what the server can answer; what is answered goes on as before."""
    with decoder_server("--devices", "2xcpu", name="generate-overload") as server:
        ask(server, OPENINGS[0], max_tokens=4)
        capacity = closed_loop(server, LOAD_S)
        replies, threads, begin = [], [], time.monotonic()
        at = begin
        while at < begin + LOAD_S:
            time.sleep(max(0.0, at - time.monotonic()))
            prompt = f"{len(threads)}: {OPENINGS[len(threads) % len(OPENINGS)]}"
            threads.append(threading.Thread(target=lambda prompt=prompt: replies.append(
                ask(server, prompt, max_tokens=LOAD_TOKENS, ignore_eos=True))))
            threads[-1].start()
            at += generator.expovariate(OVERLOAD * capacity)
        for thread in threads:
            thread.join()
        wall_s = time.monotonic() - begin
    whole = [reply for reply in replies if reply.is_whole()]
    others = [(reply.status, reply.error) for reply in replies if not reply.is_whole() and reply.status != 429]
    first = sorted(reply.first_s() for reply in whole)
    report.raw["overload"] = {"capacity_per_s": capacity, "asked": len(replies), "whole": len(whole), "first_s": first, "wall_s": wall_s}
    report.add(at_least(f"{OVERLOAD}x overload: answered a second, against {capacity:.2f} of {CLOSED_CLIENTS} clients in turn",
                        len(whole) / wall_s / capacity, 0.95))
    report.add(holds("neither answered nor told to come again", not others, f"{len(others)} {others[:1] or ''}", "0"))
    report.add(holds("first token, the last", bool(first), f"{first[-1]:.1f} s" if first else "none", "stated"))


def measure(report, arguments):
    generator = random.Random(arguments.seed)
    report.raw["seed"] = arguments.seed
    kills_on_a_cpu(report, generator)
    prompt_too_long(report)
    clients_go(report)
    burst(report)
    overload(report, generator)
