"""What `muster plan` says to wrong input: the exit code of its kind, one sentence that names it and the right form."""

import json
import os
import shutil
import struct
import subprocess

from programs import MUSTER, ROOT, scratch
from report import holds

TITLE = "Bad input: exit code of its kind, one sentence that names it and the nearest right form"
IS_TIMED = False

MODEL = ROOT / "tests" / "plans" / "models" / "llama-3-8b"
MACHINE = ("--machine", "sim:2xA10G-24G")
INVALID, NOT_FOUND, CORRUPT = 2, 3, 7


def without_a_shard(folder):
    """A model whose index names a shard that is not there."""
    folder.mkdir(parents=True)
    shutil.copy(MODEL / "config.json", folder)
    index = {"weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors",
                            "lm_head.weight": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    header = json.dumps({"model.embed_tokens.weight": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}).encode()
    (folder / "model-00001-of-00002.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    return folder


def only_a_pickle(folder):
    folder.mkdir(parents=True)
    shutil.copy(MODEL / "config.json", folder)
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04")
    return folder


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def cases():
    """(what, model, further arguments, exit code, words that the sentence must have)."""
    folder = scratch("plan-bad-input")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    contradictory = written(folder / "map.json", json.dumps({"": 0, "model.layers.3.mlp": 1}))
    apart = written(folder / "apart.json", json.dumps({"": 0, "model.norm": 0, "lm_head": 1}))
    hole = written(folder / "hole.json", json.dumps({"model.layers": 0}))
    noise = written(folder / "noise.txt", "these are no layers\n")
    machine = written(folder / "machine.json", '{"muster_machine": 1, "nodes": [{"devices": [{"modle": "L4-24G"}]}]}')
    return [
        ("unknown device", MODEL, (*MACHINE, "--max-memory", "cuda:7=10GB"), INVALID, ("cuda:7", "did you mean")),
        ("10gb, which accelerate reads as bits", MODEL, (*MACHINE, "--max-memory", "cuda:0=10gb"), INVALID,
         ("10gb", "bits", "10GB")),
        ("a negative size", MODEL, (*MACHINE, "--max-memory", "cuda:0=-10GB"), INVALID, ("-10GB", "10GB")),
        ("a size in TB", MODEL, (*MACHINE, "--max-memory", "cpu=2TB"), INVALID, ("2TB", "2000GB")),
        ("a bare number of nothing", MODEL, (*MACHINE, "--max-memory", "cuda:0"), INVALID, ("cuda:0",)),
        ("a missing shard", without_a_shard(folder / "shard"), MACHINE, NOT_FOUND, ("model-00002-of-00002.safetensors",)),
        ("a PyTorch archive alone", only_a_pickle(folder / "pickle"), MACHINE, NOT_FOUND, ("pytorch_model.bin", "model.safetensors")),
        ("a map that cuts a layer", MODEL, (*MACHINE, "--map", contradictory), INVALID, ("model.layers.3.mlp",)),
        ("a map that parts what is computed as one", MODEL, (*MACHINE, "--map", apart), INVALID, ("lm_head", "model.norm")),
        ("a map with a hole", MODEL, (*MACHINE, "--map", hole), INVALID, ("model.embed_tokens",)),
        ("a map that is none", MODEL, (*MACHINE, "--map", noise), CORRUPT, ("noise.txt",)),
        ("a misspelt key of a machine", MODEL, ("--machine", machine), INVALID, ("modle", "did you mean model")),
        ("an unknown GPU", MODEL, ("--machine", "sim:2xH10-80G"), NOT_FOUND, ("H10-80G", "H100-80G")),
        ("a degree that does not divide", MODEL, (*MACHINE, "--tensor-parallel", "3"), INVALID, ("3", "32 attention heads")),
        ("an unknown strategy", MODEL, (*MACHINE, "--strategy", "sequental"), INVALID, ("did you mean sequential",)),
        ("an unknown dtype", MODEL, (*MACHINE, "--dtype", "fp17"), INVALID, ("fp17",)),
        ("an unknown flag", MODEL, (*MACHINE, "--contxt", "8"), INVALID, ("--contxt", "--context")),
    ]


def measure(report, _arguments):
    for what, model, words, code, parts in cases():
        done = subprocess.run([MUSTER, "plan", model, *words], capture_output=True, text=True, check=False,
                              env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
        said = done.stderr.strip()
        is_right = (done.returncode == code and not done.stdout and len(said.splitlines()) == 1
                    and all(part in said for part in parts))
        report.raw.setdefault("cases", []).append({"what": what, "exit": done.returncode, "said": said})
        report.add(holds(what, is_right, f"exit {done.returncode}: {said.removeprefix('muster: ')[:110]}"))
