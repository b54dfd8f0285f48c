"""Clients that ask one after the other, by `muster bench generate`: the same requests to every server, and what its samples show."""

import math
import subprocess

from bench import running

# A request takes half a minute of the slowest server among 32: one that has no answer by then has hung.
WORDS = ("--completions", "--ignore-eos", "--prompt-words", "lognormal:128:0.6", "--output-tokens", "lognormal:64:0.6", "--warm-up", "none",
         "--timeout", "120s")
LIMIT_S = 240  # of a trial, the answers behind its end included
SECOND_NS = 1e9


class Requests:
    """The answered requests of a trial, in the order in which they were sent; times in seconds."""

    def __init__(self, trial, clients):
        samples, gaps_from = trial["samples"], 0
        self.clients, self.failed, self.sent_until = clients, 0, 0.0
        self.all, self.unfinished = [], []
        for i, intended in enumerate(samples["intended_ns"]):
            events = samples["token_events"][i]
            gaps = samples["token_gaps_ns"][gaps_from:gaps_from + max(0, events - 1)]
            gaps_from += len(gaps)
            self.sent_until = max(self.sent_until, intended / SECOND_NS)
            first, count = samples["first_token_ns"][i], samples["output_tokens"][i]
            is_whole = samples["outcome"][i] == "answered" and first is not None and count
            self.failed += not is_whole
            if first is None or (not is_whole and not events):
                continue
            times = [(intended + first) / SECOND_NS]
            for gap in gaps:
                times.append(times[-1] + gap / SECOND_NS)
            one = {"asked": intended / SECOND_NS, "times": times, "tokens": count or events, "prompt": samples["input_tokens"][i] or 0}
            (self.all if is_whole else self.unfinished).append(one)

    def settled_at(self):
        """When the prompts that all came at once are in."""
        return max((one["times"][0] for one in self.all[:self.clients]), default=0.0)

    def first_token_seconds(self):
        """Of those that came later."""
        return [one["times"][0] - one["asked"] for one in self.all[self.clients:]]

    def tokens_per_s(self):
        """While every client was being answered and none was among the first prompts: a server may send several tokens as one piece. What
        came of replies that broke off counts, in the server's favour."""
        begin, end = self.settled_at(), self.sent_until
        if end <= begin:
            return 0.0
        inside = sum(one["tokens"] / len(one["times"]) * sum(begin <= at < end for at in one["times"]) for one in self.all + self.unfinished)
        return inside / (end - begin)

    def places_most(self, block):
        """The most places for tokens that prompts and replies held at once, in whole blocks of so many, as a cache lends them."""
        def held(one, moment):
            tokens = one["prompt"] + one["tokens"] * sum(at <= moment for at in one["times"]) / len(one["times"])
            return math.ceil(tokens / block) * block

        ends = sorted(one["times"][-1] for one in self.all)
        return max((sum(held(one, moment) for one in self.all if one["asked"] <= moment <= one["times"][-1]) for moment in ends), default=0)


def run(turn, clients, seconds, seed):
    """One trial against a server that is awake. Errors: RuntimeError (it hangs, or gives no more answers than there are clients)."""
    try:
        result, _ = running.measure("generate", f"http://127.0.0.1:{turn.port}", "--model", turn.peer.model, *WORDS, "--clients", clients,
                                    "--duration", f"{seconds}s", "--seed", seed, *turn.peer.extra, timeout_s=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{turn.name}: no end within {LIMIT_S} s") from error
    trial = result["points"][0]["trials"][0]
    requests = Requests(trial, clients)
    if len(requests.all) <= clients:
        raise RuntimeError(f"{turn.name}: {len(requests.all)} answers from {clients} clients in {seconds} s {trial['problems'][:1] or ''}")
    return requests, {"valid": trial["valid"], "problems": trial["problems"], "output_source": (trial["tokens"] or {}).get("output_source")}
