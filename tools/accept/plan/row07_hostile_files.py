"""The parsers of model files on hostile ones: made by hand, against the command, and under libFuzzer with ASan and UBSan."""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from programs import MUSTER, ROOT
from report import holds

TITLE = "Hostile model files: an Error in one sentence, no crash, no large allocation (./accept --long: ten minutes of fuzzing each)"
IS_TIMED = False

PARSERS = ("gguf", "safetensors", "config")
SECONDS, SECONDS_LONG = 20, 600
# InvalidArgument, NotFound, Unsupported, Corrupt, ResourceExhausted (larger than is read): what is wrong with a file.
FILE_ERRORS = (2, 3, 4, 7, 8)
NOISE = re.compile(r"terminate called|Traceback|what\(\):|#0 |Segmentation|core dumped|Assertion|bad_alloc")
# Beside the files themselves and as much again for what they really hold. What the command takes on a sound tiny model
# is far below; what a believed count would take is far above.
PEAK_BYTES_MAX = 64 << 20
HUGE = 1 << 62

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 16, "num_hidden_layers": 1,
         "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 8}


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def gguf(tensors, keys, body=b"", version=3):
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body


def gguf_tensor(name="w", shape=(4,), kind=0, offset=0):
    return text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset)


def gguf_model(block_count):
    keys = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    for name, value in (("block_count", block_count), ("embedding_length", 16), ("attention.head_count", 2)):
        keys += text(f"llama.{name}") + struct.pack("<II", 4, value)
    return gguf(0, 4, keys)


def gguf_files():
    """name: bytes."""
    array = lambda kind, count: text("k") + struct.pack("<IIQ", 9, kind, count)
    files = {
        "empty": b"",
        "magic alone": b"GGUF",
        "another magic": b"GGML" + bytes(64),
        "version 1": gguf(0, 0, version=1),
        "version 4 billion": gguf(0, 0, version=0xFFFFFFFF),
        "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "2^62 tensors": gguf(HUGE, 0),
        "2^62 keys": gguf(0, HUGE),
        "a key of 2^62 bytes": gguf(0, 1, struct.pack("<Q", HUGE)),
        "a string of 2^62 bytes": gguf(0, 1, text("k") + struct.pack("<IQ", 8, HUGE)),
        "2^62 numbers": gguf(0, 1, array(4, HUGE)),
        "2^64 - 1 numbers of 8 bytes": gguf(0, 1, array(10, 2**64 - 1)),
        "2^62 strings": gguf(0, 1, array(8, HUGE)),
        "a list of lists": gguf(0, 1, array(9, 1) * 2),
        "a type that is not there": gguf(0, 1, text("k") + struct.pack("<I", 99)),
        "alignment 0": gguf(0, 1, text("general.alignment") + struct.pack("<II", 4, 0)),
        "alignment 3": gguf(0, 1, text("general.alignment") + struct.pack("<II", 4, 3)),
        "alignment 2^31": gguf(1, 1, text("general.alignment") + struct.pack("<II", 4, 1 << 31) + gguf_tensor()),
        "5 dimensions": gguf(1, 0, gguf_tensor(shape=(1,) * 5)),
        "4 billion dimensions": gguf(1, 0, text("w") + struct.pack("<I", 2**32 - 1)),
        "a shape that overflows": gguf(1, 0, gguf_tensor(shape=(2**32, 2**32, 2**32, 2**32))),
        "a negative extent": gguf(1, 0, gguf_tensor(shape=(2**64 - 1,))),
        "a removed type": gguf(1, 0, gguf_tensor(kind=31)),
        "a broken block": gguf(1, 0, gguf_tensor(kind=12, shape=(255,))),
        "an offset past the end": gguf(1, 0, gguf_tensor(offset=HUGE)) + bytes(64),
        "an offset that wraps": gguf(1, 0, gguf_tensor(offset=2**64 - 32)) + bytes(64),
        "overlapping tensors": gguf(2, 0, gguf_tensor("a", (64,)) + gguf_tensor("b", (64,), offset=32)) + bytes(400),
        "one tensor twice": gguf(2, 0, gguf_tensor("a") + gguf_tensor("a", offset=32)) + bytes(200),
        "a name of a megabyte": gguf(1, 0, text(b"x" * (1 << 20))),
        "escape codes in a name": gguf(1, 0, gguf_tensor("\x1b[2J\x00\xff", kind=99)),
        "no architecture": gguf(0, 0),
        "4 billion blocks": gguf_model(2**32 - 1),
        "blocks without tensors": gguf_model(2000),
    }
    whole = (ROOT / "src" / "modelfile" / "testdata" / "types.gguf").read_bytes()
    files.update({f"cut at byte {cut}": whole[:cut] for cut in (5, 23, 24, 100, 500, 1500, len(whole) - 1)})
    return files


def safetensors(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def safetensors_files():
    tensor = lambda **fields: {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **fields}}
    return {
        "empty": b"",
        "seven bytes": bytes(7),
        "a header of 2^64 - 1 bytes": struct.pack("<Q", 2**64 - 1) + b"{}",
        "a header longer than the file": struct.pack("<Q", 10**8) + b"{}",
        "a header past the limit": struct.pack("<Q", 10**8 + 1) + bytes(10**8 + 1),
        "no JSON": safetensors(b"\xff\xfe not json"),
        "a list": safetensors(b"[]"),
        "brackets, 50 million": safetensors(b"[" * 50_000_000),
        "objects, 10 million deep": safetensors(b'{"a":' * 10_000_000),
        "lists in a shape, 20 million deep": safetensors(b'{"w":{"shape":' + b"[" * 20_000_000),
        "a field of 20 million zeros": safetensors(b'{"w":{"x":[' + b"0," * 20_000_000),
        "a shape that overflows": safetensors(tensor(shape=[2**62, 4], data_offsets=[0, 0])),
        "a negative extent": safetensors(tensor(shape=[-1]), bytes(4)),
        "a float extent": safetensors(tensor(shape=[1e30]), bytes(4)),
        "offsets backwards": safetensors(tensor(data_offsets=[4, 0]), bytes(4)),
        "offsets past the end": safetensors(tensor(data_offsets=[0, 2**63]), bytes(4)),
        "an unknown dtype": safetensors(tensor(dtype="F7"), bytes(4)),
        "half a byte": safetensors(tensor(dtype="F4", shape=[7]), bytes(4)),
        "a hole": safetensors(tensor(data_offsets=[4, 8]), bytes(8)),
        "an overlap": safetensors({"a": tensor()["w"], "b": tensor()["w"]}, bytes(4)),
        "of another model": safetensors(tensor(), bytes(4)),
    }


def configs():
    tall = {**LLAMA, "num_hidden_layers": 2048, "hidden_size": 1 << 20, "intermediate_size": 1 << 20, "vocab_size": 1 << 26}
    return {
        "empty": b"",
        "no JSON": b"\xff\xfe",
        "a list": b"[]",
        "brackets, 4 million": b"[" * 4_000_000,
        "a file of 64 MiB": b" " * (64 << 20),
        "no family": json.dumps({**LLAMA, "model_type": None}).encode(),
        "an unknown family": json.dumps({**LLAMA, "model_type": "\x1b[2J" * 1000}).encode(),
        "2^64 layers": json.dumps({**LLAMA, "num_hidden_layers": 2**64}).encode(),
        "2^31 layers": json.dumps({**LLAMA, "num_hidden_layers": 2**31}).encode(),
        "no heads": json.dumps({**LLAMA, "num_attention_heads": 0}).encode(),
        "a hidden size of -1": json.dumps({**LLAMA, "hidden_size": -1}).encode(),
        "a hidden size of 1e300": json.dumps({**LLAMA, "hidden_size": 1e300}).encode(),
        "the largest of everything": json.dumps(tall).encode(),
        "2^40 experts": json.dumps({**LLAMA, "model_type": "mixtral", "num_local_experts": 2**40}).encode(),
        "a million layer types": json.dumps({**LLAMA, "layer_types": ["x"] * 100_000}).encode(),
        "a text_config of itself": json.dumps({**LLAMA, "model_type": "gemma3", "text_config": 5}).encode(),
        "a window pattern of 0": json.dumps({**LLAMA, "model_type": "gemma3", "sliding_window_pattern": 0}).encode(),
        "an image of no patches": json.dumps({"model_type": "gemma3", "text_config": LLAMA,
                                              "vision_config": {"patch_size": 0}}).encode(),
    }


# A process counts the memory of the one it was forked from as its own; a small one in between keeps ours out.
RUNNER = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
out, said = process.stdout.read(), process.stderr.read()
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([process.returncode, out.decode(errors="replace"), said.decode(errors="replace"), usage.ru_maxrss * 1024]))
"""


def run(source):
    """Exit code, answer, what it said, and the most memory it held."""
    done = subprocess.run([sys.executable, "-c", RUNNER, MUSTER, "estimate", source, "--json"], capture_output=True, check=True, timeout=120)
    return json.loads(done.stdout)


def mapped(source):
    """The bytes of the files that are mapped and scanned: they count as the process's own while they are read."""
    files = source.iterdir() if source.is_dir() else [source]
    return sum(path.stat().st_size for path in files)


def judge(report, group, sources):
    faults, most = [], 0
    for name, source in sources.items():
        code, out, said, peak = run(source)
        above = peak - 2 * mapped(source)
        most = max(most, above)
        wrong = []
        if code not in FILE_ERRORS:
            wrong.append(f"exit code {code}")
        if out.strip():
            wrong.append("an answer")
        if len(said.strip().splitlines()) != 1 or len(said) > 1000 or NOISE.search(said) or "\x1b" in said:
            wrong.append(f"says {said[:200]!r}")
        if above > PEAK_BYTES_MAX:
            wrong.append(f"{above:,} bytes above twice the file")
        faults += [f"{name}: {what}" for what in wrong]
        report.raw[f"{group}: {name}"] = {"exit": code, "said": said[:1000], "peak_bytes": peak}
    report.add(holds(f"{group}, {len(sources)} hostile files", not faults, faults[0] if faults else
                     f"{len(sources)} errors in one sentence, at most {most:,} bytes",
                     f"an error of the file, <= {PEAK_BYTES_MAX:,} bytes beyond twice it"))


def written(folder, files, name):
    """Each file in a folder of its own, under `name`, beside a sound config where the file is not one."""
    sources = {}
    for index, (what, content) in enumerate(files.items()):
        place = folder / f"{name.replace('.', '_')}-{index}"
        place.mkdir()
        (place / name).write_bytes(content)
        if name == "model.safetensors":
            (place / "config.json").write_text(json.dumps(LLAMA))
        sources[what] = place if name == "model.safetensors" else place / name
    return sources


def fuzz(report, arguments):
    tree = ROOT / "build-test" / "sanitized"
    if not (tree / "build.ninja").exists():
        report.add(holds("the fuzz programs are built", False, "run ./test first"))
        return
    programs = [f"{parser}_fuzz" for parser in PARSERS]
    subprocess.run(["ninja", "-C", tree, *programs], check=True, stdout=subprocess.DEVNULL)
    seconds = SECONDS_LONG if arguments.long else SECONDS
    done = subprocess.run(["ctest", "--test-dir", tree, "-R", f"^fuzz[.]({'|'.join(programs)})$", "-j", str(os.cpu_count()), "--verbose"],
                          capture_output=True, text=True, env=dict(os.environ, FUZZ_SECONDS=str(seconds), FUZZ_SEED=str(arguments.seed)))
    report.raw["fuzz"] = {"output": done.stdout[-100000:], "seconds_each": seconds, "seed": arguments.seed}
    outcome = dict(re.findall(r"Test +#\d+: fuzz\.(\w+) \.+ *(?:\*\*\*)?(\w+)", done.stdout))
    inputs = sum(map(int, re.findall(r"stat::number_of_executed_units: (\d+)", done.stdout)))
    for program in programs:
        report.add(holds(f"{program} under ASan and UBSan", outcome.get(program) == "Passed", outcome.get(program, "no such program"),
                         f"{seconds} s, no finding"))
    report.add(holds("inputs tried", inputs > 0, f"{inputs:,}", "> 0"))


def measure(report, arguments):
    with tempfile.TemporaryDirectory(prefix="muster-hostile-") as scratch:
        folder = pathlib.Path(scratch)
        judge(report, "GGUF", written(folder, gguf_files(), "model.gguf"))
        judge(report, "safetensors", written(folder, safetensors_files(), "model.safetensors"))
        judge(report, "config.json", written(folder, configs(), "config.json"))
        archives = {name: folder / name for name in ("pytorch_model.bin", "model.pt", "model.pth", "model.ckpt")}
        for path in archives.values():
            path.write_bytes(b"PK\x03\x04" + bytes(100))
        judge(report, "PyTorch archives", archives)
    fuzz(report, arguments)
