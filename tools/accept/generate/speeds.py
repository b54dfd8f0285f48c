"""How fast one stream is read and written, as the client sees it; of a peer also as it says itself, and then what is more counts."""

import itertools
import json
import statistics
import subprocess

import run_interleaved
import texts
from generate.reference import SMOLLM2
from programs import MUSTER, scratch
from report import at_least, skipped

LINES = 4000
SHARE_ENOUGH = 0.8  # of the read bandwidth: a ratio that would need more counts as met there


def id_prompts(length, count):
    """`count` prompts of English, package descriptions, of `length` ids each; all begin differently."""
    path = scratch("generate-english.jsonl")
    path.write_text("".join(json.dumps({"text": line + "\n"}) + "\n" for line in texts.corpus_lines()[:LINES]), encoding="utf-8")
    done = subprocess.run([MUSTER, "tokenize", SMOLLM2, path], capture_output=True, text=True, check=True)
    ids = [id for line in done.stdout.splitlines() for id in json.loads(line)["ids"]]
    if len(ids) < length * count:
        raise RuntimeError(f"the corpus has {len(ids)} tokens, and {length * count} are wanted")
    return [ids[i * length:(i + 1) * length] for i in range(count)]


def prefill_rate(reply, length, is_own):
    """Tokens of the prompt a second, to the first token of the reply."""
    seen = length / ((reply.times[0] if reply.times else reply.ended_at) - reply.asked_at)
    told = reply.timings or {}
    if is_own or told.get("prompt_n") != length or not told.get("prompt_ms"):
        return seen
    return max(seen, length / told["prompt_ms"] * 1e3)


def decode_rate(reply, is_own):
    """Tokens a second behind the first one."""
    count = reply.usage["completion_tokens"]
    seen = (count - 1) / (reply.times[-1] - reply.times[0])
    told = reply.timings or {}
    if is_own or not told.get("predicted_ms"):
        return seen
    return max(seen, (told["predicted_n"] - 1) / told["predicted_ms"] * 1e3)


def interleave(report, contenders, rounds, may_fail=()):
    """As run_interleaved.interleave; of `may_fail` one that fails is told, and left out of it all."""
    def leaves_out(name, index, error):
        if name in may_fail:
            report.add(skipped(name, f"round {index + 1}: {str(error)[-300:]}"))
        return name in may_fail

    return run_interleaved.interleave(contenders, rounds, leaves_out)


def in_turns(report, turns, prompts, rounds, repeats, measure_one, beside=None):
    """name -> samples: each turn warms up, then takes the median of `repeats` of measure_one(turn, prompt). All of a round have the same
    prompts. `beside`: name -> what else is measured once a round."""
    def one(turn, own_prompts):
        with turn.awake():
            turn.ask(next(own_prompts), 8)
            rates = [measure_one(turn, next(own_prompts)) for _ in range(repeats)]
        return {"tokens_per_s": statistics.median(rates), "each": rates}

    contenders = {name: (lambda t=turn, p=itertools.cycle(prompts): one(t, p)) for name, turn in turns.items()}
    samples = interleave(report, {**contenders, **(beside or {})}, rounds, [name for name, turn in turns.items() if not turn.is_own])
    print("  note  " + ", ".join(f"{name} {run_interleaved.median(samples[name], 'tokens_per_s'):,.0f}" for name in turns if name in samples)
          + " tok/s", flush=True)
    return samples


def fastest(samples, names):
    here = [name for name in names if name in samples]
    return max(here, key=lambda name: run_interleaved.median(samples[name], "tokens_per_s")) if here else None


def shown(samples, *names):
    return " against ".join(f"{run_interleaved.median(samples[name], 'tokens_per_s'):,.0f}" for name in names) + " tok/s"


def add_ratio(report, what, samples, ours, peers, factor, bytes_per_token=None):
    """Ours against the fastest of the peers. With `bytes_per_token` what the read bandwidth (samples["bandwidth"]) gives ends the demand."""
    best = fastest(samples, peers)
    if best is None:
        report.add(skipped(f"{what}, times the best of {', '.join(peers)}", "there is no peer"))
        return
    what = f"{what}, times {best} ({shown(samples, ours, best)})"
    ratio = run_interleaved.ratio(samples, ours, best, "tokens_per_s")
    wanted = factor * statistics.median(share(samples, best, bytes_per_token)) if bytes_per_token else 0.0
    if ratio < factor and wanted > SHARE_ENOUGH:
        report.add(at_least(f"{what}: {ratio:.2f}x; {factor}x would take {wanted:.2f} of the read bandwidth, so of that",
                            statistics.median(share(samples, ours, bytes_per_token)), SHARE_ENOUGH))
    else:
        report.add(at_least(what, ratio, factor, unit="x"))


def share(samples, name, bytes_per_token):
    """By round: the bytes that the tokens read, of those that could be read then."""
    return [one["tokens_per_s"] * bytes_per_token / beside["bytes_per_s"] for one, beside in zip(samples[name], samples["bandwidth"])]
