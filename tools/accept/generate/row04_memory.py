"""Memory of a decoder: the engine's account against the formula of the plan, and a worker's resident pages against the plan itself."""

import itertools
import json
import pathlib
import random
import re
import struct
import subprocess

from generate.replies import DECODER, skip_reason  # noqa: F401  a row is asked for it
from generate.streams import ask, ask_all, MODEL
from plan.row06_memory import run_tests
from programs import MUSTER, TESTS, children_of, scratch
from report import at_least, at_most, holds
from serve.running import serving

TITLE = "Memory of a decoder on a CPU: allocator within 1 % of the plan, resident within 5 %, over shapes, batches and contexts"
IS_TIMED = False

ALLOCATOR_PERCENT, RESIDENT_PERCENT, FIGURES_LEAST = 1.0, 5.0, 20
# (sequences, tokens of each): up to 16,384 tokens, since each of them is computed.
GRID = ((1, 128), (8, 128), (32, 128), (1, 512), (8, 512), (32, 512), (1, 2048), (8, 2048), (1, 8192))
PRECISIONS = {"own": "as stored", "fp32": "fp32", "bf16": "bf16"}  # and what `muster estimate` calls them
# SmolLM2-135M: the table is Q8_0, 34 bytes for 32 values.
VOCAB, TABLE_ROW = 49152, 576 // 32 * 34
STEP_TOKENS, LOGITS_ROWS = 512, 64  # src/spec/cpu_decoder_memory.h, CpuDecoderRun
ANSWER_S = 300  # until the next piece of an answer: the longest prompts take half a minute


def show_allocator(report):
    tests, output = run_tests(report, TESTS / "plain", "engine_test", "*DecoderMemory*", MUSTER_SMOLLM2=str(DECODER))
    rows = [line.split()[1:] for line in output.splitlines() if line.startswith("memory ")]
    report.raw["allocator"] = [[*row[:3], int(row[3]), int(row[4])] for row in rows]
    for model in sorted({row[0] for row in rows}):
        errors = [abs(int(row[3]) / int(row[4]) - 1) * 100 for row in rows if row[0] == model]
        print(f"  note  {model}: {len(errors)} figures, largest error {max(errors):.3f} %")
    errors = [abs(int(row[3]) / int(row[4]) - 1) * 100 for row in rows]
    report.add(at_least("allocator: shapes x batches x contexts x precisions", len(rows), FIGURES_LEAST, digits=0))
    report.add(at_most("allocator: largest error", max(errors, default=100.0), ALLOCATOR_PERCENT, digits=3, unit=" %"))
    failed = [name for name, _, has_failed in tests if has_failed]
    report.add(holds("the engine's tests of it", bool(tests) and not failed, f"{len(tests)} tests, failed: {' '.join(failed) or 'none'}",
                     "all pass"))


def write_tiny(folder):
    """A Llama of two layers of width 32, all weights zero: what its worker takes is the process itself."""
    folder.mkdir(parents=True, exist_ok=True)
    shapes = {"model.embed_tokens.weight": [48, 32], "model.norm.weight": [32]}
    for layer in ("model.layers.0.", "model.layers.1."):
        shapes |= {layer + name + ".weight": shape for name, shape in {
            "input_layernorm": [32], "post_attention_layernorm": [32], "self_attn.q_proj": [32, 32], "self_attn.k_proj": [16, 32],
            "self_attn.v_proj": [16, 32], "self_attn.o_proj": [32, 32], "mlp.gate_proj": [48, 32], "mlp.up_proj": [48, 32],
            "mlp.down_proj": [32, 48]}.items()}
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "bos_token_id": 0, "eos_token_id": 47, "head_dim": 8,
        "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 128, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True,
        "vocab_size": 48}))
    vocab = {"<end>": 0} | {letter: 1 + i for i, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": byte_level,
        "post_processor": None, "decoder": byte_level,
        "added_tokens": [{"id": 0, "content": "<end>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True}],
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}"}))
    return folder


def resident(server):
    """Bytes of its one worker that are in memory."""
    pid, = children_of(server.process.pid)
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = {name: int(re.search(rf"^{name}:\s+(\d+) kB", rollup, re.M)[1]) << 10 for name in ("Rss", "Pss", "AnonHugePages")}
    # Of the table, which is read where it is: the kernel maps as much about a row as stands together in its cache, 64 KiB or megabytes.
    mapped = re.findall(rf"^\S+ \S+ \S+ \S+ \S+ +{re.escape(str(DECODER))}\n(?:\S+: .*\n)*?Rss: +(\d+) kB",
                        pathlib.Path(f"/proc/{pid}/smaps").read_text(), re.M)
    found["table"] = min(VOCAB * TABLE_ROW, sum(int(size) << 10 for size in mapped))
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return {**found, "VmHWM": int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)[1]) << 10}


def planned(model, sequences, context):
    """What `muster estimate` says, by dtype."""
    done = subprocess.run([str(MUSTER), "estimate", str(model), "--task", "generate", "--batch", str(sequences), "--context", str(context),
                           "--machine", "1xcpu", "--json"], check=True, capture_output=True, text=True)
    return {each["dtype"]: each["memory"] for each in json.loads(done.stdout)["estimates"]}


def touched(plan, table, prompts, sequences):
    """The plan's bytes without what this load never writes: rows of a step and of logits beyond its own, and of the table what is not mapped.
    Memory that was never written is not resident."""
    rows = min(STEP_TOKENS, sum(map(len, prompts)))
    return (plan["weights"] - VOCAB * TABLE_ROW + table + plan["kv_cache"] + plan["activations"] * rows / STEP_TOKENS
            + plan["logits"] * sequences / LOGITS_ROWS)


def fixed_cost(report):
    """Resident bytes of a worker beside its decoder: the program, torch's libraries, the threads."""
    tiny = write_tiny(scratch("tiny-decoder"))
    with serving(f"{MODEL}={tiny}", "--devices", "1xcpu", "--precision", "own", name="generate-memory") as server:
        reply = ask(server, [5] * 16, max_tokens=4, ignore_eos=True)
        if not reply.is_whole():
            raise RuntimeError(f"the tiny model gave no whole reply: {reply.status} {reply.error}")
        found = resident(server)
    plan = planned(tiny, 1, 20)["as stored"]["total"]
    report.raw["tiny"] = {"resident": found, "planned": plan}
    print(f"  note  a worker beside its decoder: {found['Rss'] - plan:,} bytes resident (with a tiny model {found['Rss']:,}, "
          f"of which {plan:,} planned)")
    return found["Rss"] - plan


def measure_one(report, precision, sequences, context, generator, fixed):
    # All have their place at once: each replies for as long as others may still read their prompts.
    replies = 16 + 2 * sequences * context // STEP_TOKENS
    prompts = [[generator.randrange(64, VOCAB) for _ in range(context - replies)] for _ in range(sequences)]
    # The cache has room for four of the longest.
    longest = min(8192, max(context, sequences * (context + 16) // 4))
    with serving(f"{MODEL}={DECODER}", "--devices", "1xcpu", "--max-length", str(longest), "--precision", precision,
                 name="generate-memory") as server:
        threads, answers = ask_all(server, prompts, max_tokens=replies, ignore_eos=True, timeout_s=ANSWER_S)
        for thread in threads:
            thread.join()
        broken = [answer.error or answer.status for answer in answers if not answer.is_whole()]
        if broken:
            raise RuntimeError(f"{len(broken)} of {sequences} replies are not whole: {broken[0]}")
        found = resident(server)
    plan = planned(DECODER, sequences, context)[PRECISIONS[precision]]
    expected = fixed + touched(plan, found["table"], prompts, sequences)
    error = (expected / found["Rss"] - 1) * 100
    report.raw.setdefault("resident", []).append(
        {"precision": precision, "sequences": sequences, "context": context, "measured": found, "planned": plan,
         "expected": round(expected), "error_percent": error})
    print(f"  note  {precision:>4} {sequences:>2} x {context:>4}: planned {plan['total']:>13,}, "
          f"touched and the process {round(expected):>13,}, resident {found['Rss']:>13,}  {error:+.2f} % (at most {found['VmHWM']:,})",
          flush=True)
    return abs(error)


def measure(report, arguments):
    if not (TESTS / "plain" / "build.ninja").exists():
        report.add(holds("the tests are built", False, "run ./test first"))
        return
    show_allocator(report)
    generator = random.Random(arguments.seed)
    report.raw["seed"] = arguments.seed
    fixed = fixed_cost(report)
    errors = []
    for precision, (sequences, context) in itertools.product(PRECISIONS, GRID):
        try:
            errors.append(measure_one(report, precision, sequences, context, generator, fixed))
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # the others are measured all the same
            report.add(holds(f"{precision}, {sequences} x {context}", False, f"{type(error).__name__}: {str(error)[-300:]}", "it can be measured"))
    report.add(at_least("resident: batches x contexts x precisions of SmolLM2", len(errors), FIGURES_LEAST, digits=0))
    report.add(at_most("resident: largest error", max(errors, default=100.0), RESIDENT_PERCENT, unit=" %"))
