"""The same prompt and seed give the same tokens: on one core or two, in company, behind what earlier prompts have left, after
preemption, after a worker's death."""

import json
import subprocess

from generate import replies
from generate.streams import ask, ask_all, decoder_server, metric
from programs import ROOT, scratch
from report import at_least, holds

TITLE = "The same tokens whatever the cores, company, prefix hits, preemption or worker; greedy and seeded"
IS_TIMED = False

TREE = ROOT / "build-test" / "plain"
SAMPLED = ("--temperature", 0.8, "--top-p", 0.95, "--seed", 7)

# What all of these begin with: several blocks of 16 tokens.
BEGINNING = " ".join(replies.OPENINGS[:6])

skip_reason = replies.skip_reason


def prefix_hits(report):
    """Each prompt in turn, behind what those before it have left, against a server that keeps nothing."""
    texts, cached = {}, []
    for words in ((), ("--no-prefix-cache",)):
        with decoder_server("--devices", "1xcpu", *words, name="generate-prefix") as server:
            for index, opening in enumerate(replies.OPENINGS):
                for sampling in ({}, {"temperature": 0.8, "top_p": 0.95, "seed": 7}):
                    reply = ask(server, f"{BEGINNING} {opening}", max_tokens=48, **sampling)
                    texts.setdefault((index, bool(sampling)), []).append(reply.text if reply.is_whole() else reply.error)
                    tokens = ((reply.usage or {}).get("prompt_tokens_details") or {}).get("cached_tokens")
                    cached.append((bool(words), tokens))
    hits = [tokens for is_off, tokens in cached if not is_off and tokens]
    report.raw["prefix hits"] = hits
    report.add(at_least(f"of {2 * len(replies.OPENINGS)} prompts behind what others left (all but the first)", len(hits),
                        2 * len(replies.OPENINGS) - 1, digits=0))
    others = [tokens for is_off, tokens in cached if is_off and tokens != 0]
    report.add(holds("with --no-prefix-cache: prompts of which anything was cached", not others, f"{len(others)}", "0"))
    same = sum(one == other for one, other in texts.values())
    report.add(at_least(f"SmolLM2 own, greedy and seeded: of {len(texts)} the same with a prefix hit and without", same, len(texts), digits=0))


def drafts(report):
    """All prompts at once, each of which repeats itself, against a server that guesses nothing."""
    texts, guessed, right = {}, 0, 0
    for precision in ("own", "bf16"):
        for words in ((), ("--num-speculative-tokens", "8")):
            with decoder_server("--devices", "1xcpu", "--precision", precision, *words, name="generate-drafts") as server:
                for sampling in ({}, {"temperature": 0.8, "top_p": 0.95, "seed": 7}):
                    threads, answers = ask_all(server, [f"{opening} {opening}" for opening in replies.OPENINGS], max_tokens=48, **sampling)
                    for thread in threads:
                        thread.join()
                    for index, reply in enumerate(answers):
                        key = (precision, index, bool(sampling))
                        texts.setdefault(key, []).append(reply.text if reply.is_whole() else reply.error)
                guessed += metric(server, "muster_generation_worker_draft_tokens_total")
                right += metric(server, "muster_generation_worker_accepted_tokens_total")
    report.raw["drafts"] = {"guessed": guessed, "right": right}
    report.add(holds("with drafts: guesses that came true, and that did not", 0 < right < guessed, f"{right:.0f}, {guessed - right:.0f}",
                     "some of both"))
    same = sum(one == other for one, other in texts.values())
    report.add(at_least(f"SmolLM2 own and bf16, greedy and seeded: of {len(texts)} the same with drafts and without", same, len(texts),
                        digits=0))


def measure(report, arguments):
    subprocess.run(["ninja", "-C", TREE, "worker_test"], check=True, stdout=subprocess.DEVNULL)
    results = scratch("generation.json")
    done = subprocess.run([TREE / "bin" / "worker_test", "--gtest_filter=Generation*", f"--gtest_output=json:{results}"],
                          capture_output=True, text=True)
    report.raw["worker_test"] = json.loads(results.read_text())
    report.add(holds("in company, behind kept beginnings, after preemption, on another worker (a tiny model)", done.returncode == 0,
                     "passed" if done.returncode == 0 else done.stdout[-300:], "passed"))
    for name, options in (("greedy", ()), ("seeded", SAMPLED)):
        for precision in ("own", "bf16"):
            same = 0
            for prompt in replies.OPENINGS:
                texts = [replies.generate(prompt, "--max-tokens", 48, "--precision", precision, *options, cores=cores)["text"]
                         for cores in (1, 2)]
                same += texts[0] == texts[1]
            report.add(at_least(f"SmolLM2 {precision}, {name}: of {len(replies.OPENINGS)} prompts the same on 1 and 2 cores", same,
                                len(replies.OPENINGS), digits=0))
    prefix_hits(report)
    drafts(report)
