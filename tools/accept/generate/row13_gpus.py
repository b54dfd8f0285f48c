"""Decoders on two stand-ins for GPUs: what rows 1, 3 and 11 show on CPUs. What only a GPU can show is in the kit (gpu-path.9)."""

import json
import os
import signal
import time

from generate import replies
from generate.row11_faults import busiest, wait_until
from generate.streams import MODEL, ask, ask_all, decoder_server, metric
from gpu_path import standin
from report import at_least, holds

TITLE = "On 2xstandin: transformers' logits and tokens, the same tokens in any company, streams that outlive their workers"
IS_TIMED = False

MUSTER = standin.BIN / "muster"
SERVER = {"muster": MUSTER, "environment": {"STANDIN": json.dumps({"all": {"memory_bytes": 4 << 30}})}}
STREAMS, KILLS, TOKENS = 8, 3, 32


def skip_reason():
    return replies.skip_reason() or standin.skip_reason()


def tiny_models(report):
    where = {"GPU_TEST_DEVICE": "standin"}
    for program, pattern, words in (
            ("engine_test", "*GpuDecoder*", "tiny models of each family: logits within 1e-4, 64 greedy tokens, the same bits in company"),
            ("worker_test", "GenerationTest.*", "in company, behind kept beginnings, after preemption, on another worker (a tiny model)")):
        passed, failed = standin.run_pattern(program, pattern, where)
        report.raw[program] = {"passed": passed, "failed": failed}
        report.add(holds(words, passed and not failed, f"{len(passed)} tests, failed: {' '.join(failed) or 'none'}", "all pass"))


def against_the_cpu(report):
    """fp32 differs from a CPU's in the last bits, so a reply may leave the CPU's where two tokens are as likely; that is counted."""
    prompts, same = replies.OPENINGS[:5], 0
    for prompt in prompts:
        texts = [replies.generate(prompt, "--max-tokens", TOKENS, "--precision", "fp32", "--devices", device, muster=MUSTER,
                                  environment=SERVER["environment"])["text"] for device in ("1xcpu", "1xstandin")]
        same += texts[0] == texts[1]
    report.add(at_least(f"SmolLM2 fp32: of {len(prompts)} prompts the tokens of the CPU", same, len(prompts), 0))


def company_and_deaths(report):
    prompts = replies.OPENINGS[:STREAMS]
    with decoder_server("--devices", "2xstandin", "--precision", "bf16", name="generate-standin", **SERVER) as server:
        alone = [ask(server, prompt, max_tokens=TOKENS, ignore_eos=True).text for prompt in prompts]
        threads, found = ask_all(server, prompts, max_tokens=TOKENS, ignore_eos=True)
        for thread in threads:
            thread.join()
        same = sum(reply.is_whole() and reply.text == text for reply, text in zip(found, alone))
        report.add(at_least(f"SmolLM2 bf16, {MODEL} on two devices: of {STREAMS} the same tokens alone and at once", same, STREAMS, 0))
        broken, different, kills = [], 0, 0
        for _ in range(KILLS):
            threads, found = ask_all(server, prompts, max_tokens=TOKENS, ignore_eos=True)
            wait_until(lambda: metric(server, "muster_generation_running") >= STREAMS, 60)
            time.sleep(1.0)  # somewhere in the middle
            kills += any(thread.is_alive() for thread in threads)
            os.kill(busiest(server), signal.SIGKILL)
            for thread in threads:
                thread.join()
            broken += [reply.error or reply.finish for reply in found if not reply.is_whole()]
            different += sum(reply.text != text for reply, text in zip(found, alone))
        report.add(at_least("kills while streams were under way", kills, KILLS, 0))
        report.add(holds(f"of {STREAMS * KILLS} streams not whole", not broken, f"{len(broken)} {broken[:1] or ''}", "0"))
        report.add(holds("texts that differ from the undisturbed", different == 0, f"{different}", "0"))


def measure(report, arguments):
    tiny_models(report)
    against_the_cpu(report)
    company_and_deaths(report)
