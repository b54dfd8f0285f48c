"""Decoders on two stand-ins for GPUs: what rows 1, 3 and 11 show on CPUs. What only a GPU can show is in the kit (gpu-path.9)."""

import json
import subprocess

from generate import replies
from generate.row11_faults import clients_go, kill_in_the_middle, prompt_too_long
from generate.streams import MODEL, ask, ask_all, decoder_server
from gpu_path import standin
from report import at_least, holds

TITLE = "On 2xstandin: transformers' logits and tokens, the same tokens in any company, streams that outlive their workers"
IS_TIMED = False

MUSTER = standin.BIN / "muster"
BF16 = ("--precision", "bf16")
SERVER = {"muster": MUSTER, "ready_s": 300, "environment": {"STANDIN": json.dumps({"all": {"memory_bytes": 4 << 30}})}}
STREAMS, KILLS, TOKENS = 16, 10, 32  # kills and streams as in row 11
STEP_S = 5.0  # more than a step of eight streams takes there
MIDDLE = 0.5  # of all tokens are there when a worker is killed
SAMPLINGS = {"greedy": (STREAMS, {}), "seeded": (STREAMS // 2, {"temperature": 0.8, "top_p": 0.95, "seed": 7})}


def skip_reason():
    return replies.skip_reason() or standin.skip_reason()


def tiny_models(report):
    for program, pattern, words in (
            ("engine_test", "*GpuDecoder*", "tiny models of each family: logits within 1e-4, 64 greedy tokens, the same bits in company"),
            ("worker_test", "GenerationTest.*", "in company, behind kept beginnings, after preemption, on another worker (a tiny model)")):
        # Little memory, all of which is filled again and again: src/engine/CMakeLists.txt, engine_standin.
        where = {"GPU_TEST_DEVICE": "standin", **({"STANDIN": json.dumps({"all": {"memory_bytes": 1 << 28}})} if program == "engine_test" else {})}
        passed, failed = standin.run_pattern(program, pattern, where)
        report.raw[program] = {"passed": passed, "failed": failed}
        report.add(holds(words, passed and not failed, f"{len(passed)} tests, failed: {' '.join(failed) or 'none'}", "all pass"))


def against_the_cpu(report):
    """fp32 differs from a CPU's in the last bits: of these prompts no reply comes to where two tokens are as likely."""
    prompts, same = replies.OPENINGS[:5], 0
    for prompt in prompts:
        texts = [replies.generate(prompt, "--max-tokens", TOKENS, "--precision", "fp32", "--devices", device, muster=MUSTER,
                                  environment=SERVER["environment"])["text"] for device in ("1xcpu", "1xstandin")]
        report.raw.setdefault("cpu and stand-in", []).append(texts)
        same += texts[0] == texts[1]
    report.add(at_least(f"SmolLM2 fp32: of {len(prompts)} prompts the tokens of the CPU", same, len(prompts), 0))


def all_at_once(server, prompts, **fields):
    threads, found = ask_all(server, prompts, max_tokens=TOKENS, ignore_eos=True, **fields)
    for thread in threads:
        thread.join()
    return found


def company(report, server, prompts):
    """A check of each sampling; the greedy replies to prompts that were alone."""
    alone = {}
    for name, (count, fields) in SAMPLINGS.items():
        replies_alone = [ask(server, prompt, max_tokens=TOKENS, ignore_eos=True, **fields) for prompt in prompts[:count]]
        broken = [reply.error or reply.status for reply in replies_alone if not reply.is_whole()]
        alone[name] = replies_alone
        found = all_at_once(server, prompts[:count], **fields)
        same = sum(reply.is_whole() and reply.text == lone.text for reply, lone in zip(found, replies_alone))
        report.add(at_least(f"SmolLM2 bf16, {MODEL} on two devices, {name}: of {count} the same tokens alone and at once"
                            + (f" (alone: {broken[:1]})" if broken else ""), 0 if broken else same, count, 0))
    return alone["greedy"]


def on_two_devices(report):
    prompts = replies.OPENINGS[:STREAMS]
    with decoder_server("--devices", "2xstandin", *BF16, name="generate-standin", **SERVER) as server:
        alone = company(report, server, prompts)
        kill_in_the_middle(report, server, prompts, alone, [MIDDLE] * KILLS, max_tokens=TOKENS, ignore_eos=True)


def clients(report):
    one = ("--devices", "1xstandin", *BF16)
    prompt_too_long(report, one, **SERVER)
    clients_go(report, one, quiet_s=STEP_S, **SERVER)


def measure(report, arguments):
    for part in (tiny_models, against_the_cpu, clients, on_two_devices):
        try:
            part(report)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # the other parts are measured all the same
            report.add(holds(part.__name__, False, f"{type(error).__name__}: {str(error)[-400:]}", "it can be measured"))
