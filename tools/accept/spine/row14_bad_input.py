"""What muster says to wrong input: the right exit code, one clear sentence, nothing under the final name."""

import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

from programs import MODEL, MUSTER
from report import holds

TITLE = "Bad input: exit code of the error's kind, one sentence naming the place, nothing left behind"
IS_TIMED = False

INVALID, NOT_FOUND, UNAVAILABLE, EXHAUSTED, CORRUPT = 2, 3, 6, 8, 7
NOISE = re.compile(r"terminate called|Traceback|what\(\):|#0 |0x[0-9a-f]{8,}|Segmentation|core dumped|Assertion")


def model_copy(folder, name):
    """The real model, by links, for one file to be replaced."""
    copy = folder / name
    copy.mkdir()
    for path in MODEL.iterdir():
        (copy / path.name).symlink_to(path)
    return copy


def replace(copy, name, content):
    (copy / name).unlink()
    if content is not None:
        (copy / name).write_bytes(content)
    return copy


def broken_models(folder):
    weights = (MODEL / "model.safetensors").read_bytes()
    overflow = struct.pack("<Q", 2**63 + 5) + weights[8:4096]
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 2**62]}}).encode()
    return {
        "no_tokenizer": replace(model_copy(folder, "no_tokenizer"), "tokenizer.json", None),
        "truncated": replace(model_copy(folder, "truncated"), "model.safetensors", weights[:len(weights) // 2]),
        "overflow": replace(model_copy(folder, "overflow"), "model.safetensors", overflow),
        "huge_shape": replace(model_copy(folder, "huge_shape"), "model.safetensors", struct.pack("<Q", len(header)) + header),
    }


def cases(folder):
    """(what, arguments, exit code, what the sentence must name)."""
    models = broken_models(folder)
    good = folder / "good.txt"
    good.write_text("one text\nanother text\n")
    lines = [json.dumps({"text": f"text {i}"}) for i in range(1, 10)]
    broken, number = folder / "broken.jsonl", folder / "number.jsonl"
    broken.write_text("\n".join(lines[:6] + ['{"text": "never closed'] + lines[7:]) + "\n")
    number.write_text("\n".join(lines[:2] + ['{"text": 42}'] + lines[3:]) + "\n")
    latin = folder / "latin.txt"
    latin.write_bytes(b"plain\nplain\nna\xefve\n")
    out = folder / "out.npy"

    def embed(model, source, *options):
        return ["embed", str(model), str(source), "-o", str(out), "--devices", "1xcpu", *options]

    return [
        ("no such file", embed(MODEL, folder / "goood.txt"), NOT_FOUND, r"goood\.txt.*good\.txt"),
        ("no such model", embed(folder / "no-model", good), NOT_FOUND, r"no-model"),
        ("a folder without tokenizer", embed(models["no_tokenizer"], good), NOT_FOUND, r"tokenizer\.json"),
        ("truncated safetensors", embed(models["truncated"], good), CORRUPT, r"model\.safetensors"),
        ("a header length that overflows", embed(models["overflow"], good), CORRUPT, r"model\.safetensors"),
        ("a shape that overflows", embed(models["huge_shape"], good), CORRUPT, r"model\.safetensors"),
        ("broken JSON on line 7", embed(MODEL, broken), None, r"broken\.jsonl:7"),
        ("a number where the text should be", embed(MODEL, number), None, r"number\.jsonl:3"),
        ("invalid UTF-8", embed(MODEL, latin), None, r"latin\.txt:3"),
        ("an unknown device", embed(MODEL, good)[:-1] + ["cuda:99"], (INVALID, NOT_FOUND, UNAVAILABLE), r"cuda:99"),
        ("an unknown kind of device", embed(MODEL, good)[:-1] + ["2xcpo"], (INVALID, NOT_FOUND), r"2xcpo"),
        ("an unknown flag", embed(MODEL, good, "--pooolng", "cls"), INVALID, r"--pooolng.*--pooling"),
        ("an unknown ending of OUT", embed(MODEL, good)[:4] + [str(folder / "out.xls")], INVALID, r"\.npy"),
        ("an unknown command", ["embedd", str(MODEL)], INVALID, r"embedd.*embed"),
    ]


def run(arguments, limit_s=120):
    return subprocess.run([MUSTER, *arguments], capture_output=True, text=True, timeout=limit_s, errors="replace")


def judge(report, folder, what, done, exit_codes, names):
    """`exit_codes`: None is any of InvalidArgument and Corrupt, the kinds of a record that is wrong."""
    allowed = {None: {INVALID, CORRUPT}}.get(exit_codes, {exit_codes} if isinstance(exit_codes, int) else set(exit_codes or ()))
    said = done.stderr.strip()
    last = said.splitlines()[-1] if said else ""
    left = [p.name for p in folder.glob("out.*") if p.suffix in (".npy", ".xls") or p.name.endswith("index.jsonl")]
    faults = []
    if done.returncode not in allowed:
        faults.append(f"exit code {done.returncode}")
    if not re.search(names, said):
        faults.append(f"does not name {names}")
    if NOISE.search(said):
        faults.append("noise in the message")
    if left:
        faults.append(f"left {left}")
    report.raw[what] = {"exit": done.returncode, "stderr": said[-3000:], "left": left}
    codes = " or ".join(map(str, sorted(allowed)))
    report.add(holds(what, not faults, "; ".join(faults + [last]) if faults else f"{done.returncode}: {last}",
                     f"exit code {codes}, naming {names}"))
    for path in folder.glob("out.*"):
        path.unlink()


def full_disk(folder, report):
    """A file system of 256 KiB of our own, in a mount namespace: no other program sees it fill up."""
    texts = folder / "many.txt"
    texts.write_text("".join(f"text number {i}\n" for i in range(3000)))
    mount = folder / "small"
    mount.mkdir()
    command = (f"mount -t tmpfs -o size=256k tmpfs {mount} && {MUSTER} embed {MODEL} {texts} -o {mount}/out.npy "
               f"--devices 1xcpu; code=$?; ls {mount} >&2; exit $code")
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command], capture_output=True,
                          text=True, timeout=300)
    said = done.stderr.strip().splitlines()
    listed = [line for line in said if line in ("out.npy", "out.npy.index.jsonl")]
    report.raw["a full disk"] = {"exit": done.returncode, "stderr": done.stderr[-3000:]}
    sentence = next((line for line in said if "No space" in line or "full" in line), said[-1] if said else "")
    report.add(holds("a full disk", done.returncode == EXHAUSTED and not listed and "small/out" in done.stderr,
                     f"{done.returncode}: {sentence}", f"exit code {EXHAUSTED}, naming the file"))


def measure(report, arguments):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-bad-"))
    try:
        for what, command, codes, names in cases(folder):
            judge(report, folder, what, run(command), codes, names)
        full_disk(folder, report)
    finally:
        shutil.rmtree(folder)
