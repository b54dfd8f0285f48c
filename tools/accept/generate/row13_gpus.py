"""Decoders on two stand-ins for GPUs: what rows 1, 3 and 11 show on CPUs. What only a GPU can show is in the kit (gpu-path.9)."""

import json
import os
import signal
import subprocess
import time

from generate import replies
from generate.row11_faults import busiest, clients_go, prompt_too_long, wait_until
from generate.streams import MODEL, ask, ask_all, decoder_server, metric
from gpu_path import standin
from report import at_least, holds

TITLE = "On 2xstandin: transformers' logits and tokens, the same tokens in any company, streams that outlive their workers"
IS_TIMED = False

MUSTER = standin.BIN / "muster"
BF16 = ("--precision", "bf16")
SERVER = {"muster": MUSTER, "ready_s": 300, "environment": {"STANDIN": json.dumps({"all": {"memory_bytes": 4 << 30}})}}
STREAMS, KILLS, TOKENS = 16, 10, 32  # kills and streams as in row 11
STEP_S = 5.0  # more than a step of eight streams takes there
KILL_LIMIT_S = 900  # of all kills: a stand-in computes slowly
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
    """A check of each sampling; the greedy texts of prompts that were alone."""
    texts = {}
    for name, (count, fields) in SAMPLINGS.items():
        replies_alone = [ask(server, prompt, max_tokens=TOKENS, ignore_eos=True, **fields) for prompt in prompts[:count]]
        broken = [reply.error or reply.status for reply in replies_alone if not reply.is_whole()]
        texts[name] = [reply.text for reply in replies_alone]
        found = all_at_once(server, prompts[:count], **fields)
        same = sum(reply.is_whole() and reply.text == text for reply, text in zip(found, texts[name]))
        report.add(at_least(f"SmolLM2 bf16, {MODEL} on two devices, {name}: of {count} the same tokens alone and at once"
                            + (f" (alone: {broken[:1]})" if broken else ""), 0 if broken else same, count, 0))
    return texts["greedy"]


def deaths(report, server, prompts, alone):
    """Each time once half of the tokens are there: whoever is killed then has streams."""
    broken, different, kills, gaps = [], 0, 0, []
    end = time.monotonic() + KILL_LIMIT_S
    while kills < KILLS and time.monotonic() < end:
        before = metric(server, "muster_generation_tokens_total")
        threads, found = ask_all(server, prompts, max_tokens=TOKENS, ignore_eos=True)
        is_midst = wait_until(lambda: metric(server, "muster_generation_tokens_total") - before >= STREAMS * TOKENS / 2, 120)
        is_under_way = is_midst and any(thread.is_alive() for thread in threads)
        if is_under_way:
            os.kill(busiest(server), signal.SIGKILL)
        for thread in threads:
            thread.join()
        kills += is_under_way
        broken += [reply.error or reply.finish for reply in found if not reply.is_whole()]
        different += sum(reply.text != text for reply, text in zip(found, alone))
        gaps += [reply.gap() for reply in found]
        if not is_midst:
            break  # it computes nothing: the checks below say so
    report.raw["kills"] = {"gaps_s": sorted(gaps), "broken": broken}
    report.add(at_least("kills while streams were under way", kills, KILLS, 0))
    report.add(holds(f"of {len(gaps)} streams not whole", not broken, f"{len(broken)} {broken[:1] or ''}", "0"))
    report.add(holds("texts that differ from the undisturbed", different == 0, f"{different}", "0"))
    report.add(holds("the longest gap of a stream, the worker's death in it", bool(gaps), f"{max(gaps, default=0):.2f} s",
                     "as it is: a stand-in loads and computes by the CPU"))


def on_two_devices(report):
    prompts = replies.OPENINGS[:STREAMS]
    with decoder_server("--devices", "2xstandin", *BF16, name="generate-standin", **SERVER) as server:
        deaths(report, server, prompts, company(report, server, prompts))


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
