"""A decoder by muster's own commands: its tokens beside the CPU's, sixteen streams through a server, memory planned and measured.

usage: generate.py MUSTER MODEL DEVICE SECONDS      a line of JSON for each; exit code 1 where tokens differ or something did not run
"""

import http.client
import json
import subprocess
import sys
import time

from served import served

PROMPTS = ("The old lighthouse keeper climbed the stairs", "A compiler reads the text of a program and", "Volcanoes form where")
TOKENS = 24
APART = 1e-3  # of two best log-probabilities: ten times what fp32 logits of two devices may differ by
STREAMS = 16
MEMORY_WITHIN = 0.03


def replies(muster, model, device):
    """Of each prompt the tokens in fp32, and how far the best one is from the second."""
    found = []
    with served(muster, f"m={model}", "--devices", device, "--precision", "fp32", "--no-prefix-cache") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        for prompt in PROMPTS:
            body = {"model": "m", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0, "logprobs": 2, "ignore_eos": True}
            connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{device}: {answer.status}: {text[:300]}")
            told = json.loads(text)["choices"][0]["logprobs"]
            best = [sorted(likely.values(), reverse=True)[:2] for likely in told["top_logprobs"]]
            found.append((told["tokens"], [first - second for first, second in best]))
    return found


def tokens(muster, model, device):
    here, cpu = replies(muster, model, device), replies(muster, model, "1xcpu")
    different = 0
    for prompt, (mine, _), (right, gaps) in zip(PROMPTS, here, cpu):
        same = next((i for i, pair in enumerate(zip(mine, right)) if pair[0] != pair[1]), min(len(mine), len(right)))
        # Behind the first that differs the texts are others, and so is all that follows.
        is_right = same == len(right) == len(mine) or (same < len(gaps) and gaps[same] < APART)
        different += not is_right
        print(json.dumps({"prompt": prompt, "tokens": len(right), "same": same, "gap_there": gaps[same] if same < len(gaps) else None,
                          "least_gap": min(gaps)}), flush=True)
    print(json.dumps({"check": f"fp32: prompts whose tokens are not the CPU's where two are apart by {APART}", "value": different,
                      "at_most": 0, "met": different == 0}), flush=True)
    return different == 0


def streams(muster, model, device, seconds):
    done = subprocess.run([muster, "bench", "generate", model, "--completions", "--devices", device, "--precision", "bf16", "--clients", str(STREAMS),
                           "--duration", f"{seconds}s", "--prompt-words", "24", "--output-tokens", "64", "--ignore-eos", "--json", "--color", "never"],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode not in (0, 22):  # 22: the figures are there, and say what makes one not valid
        raise RuntimeError(f"bench generate ended with {done.returncode}")
    trial = json.loads(done.stdout)["points"][0]["trials"][0]
    of = lambda name, quantile: ((trial.get(name) or {}).get(quantile) or {}).get("value")
    print(json.dumps({"streams": STREAMS, "precision": "bf16", "tokens_per_second": trial["tokens"]["output_per_second"],
                      "first_token_s": {q: of("first_token", q) for q in ("p50", "p99")},
                      "per_token_s": {q: of("per_token", q) for q in ("p50", "p99")}, "requests": trial["requests"], "steady": trial["steady"],
                      "valid": trial["valid"]}), flush=True)
    return trial["requests"]["answered"] > 0 and not any(trial["requests"]["failed"].values())


def memory(muster, model, device):
    """What a reply takes of the device, the driver's own part included, beside what is planned for so long a context."""
    done = subprocess.run([muster, "monitor", "--json", "--", muster, "generate", model, "-p", PROMPTS[0] * 8, "--raw", "--json", "--max-tokens", "256",
                           "--ignore-eos", "--devices", device, "--precision", "bf16"], stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    reply, watched = lines[0], lines[-1]
    context = reply["prompt_tokens"] + reply["completion_tokens"]
    used = next((one["memory_used_bytes"] for one in watched["devices"] if one["name"] == device), None)
    planned = json.loads(subprocess.run([muster, "plan", model, "--dtype", "bf16", "--context", str(context), "--json"], stdout=subprocess.PIPE,
                                        text=True, check=True).stdout)["copies"][0]["stages"][0]["memory_per_device"]
    print(json.dumps({"planned": planned, "context": context}), flush=True)
    print(json.dumps({"measured": {key: reply.get(key) for key in ("weights_bytes", "cache_bytes", "worker_bytes", "decode_seconds")}, "used": used}),
          flush=True)
    if not device.startswith("cuda") or not used:
        return True
    taken = used["max"] - used["min"]
    off = taken / planned["total"] - 1
    print(json.dumps({"check": "memory of the device against the plan, the driver's part included", "value": off, "at_most": MEMORY_WITHIN,
                      "met": abs(off) <= MEMORY_WITHIN}), flush=True)
    return True


def main():
    muster, model, device, seconds = sys.argv[1:]
    end = time.monotonic() + float(seconds)
    good = True
    for part in (lambda: tokens(muster, model, device), lambda: streams(muster, model, device, 8 if device.startswith("cuda") else 3),
                 lambda: memory(muster, model, device)):
        if time.monotonic() > end:
            print(json.dumps({"left_out": "no time was left for the rest"}))
            return 1
        try:
            good &= part()
        except (OSError, RuntimeError, LookupError, TypeError, ValueError, http.client.HTTPException, subprocess.SubprocessError) as error:
            # The others run all the same.
            print(json.dumps({"failed": f"{type(error).__name__}: {str(error)[-300:]}"}), flush=True)
            good = False
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
