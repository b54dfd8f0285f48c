"""muster's bytes of a model against transformers' own tensors: every family, dtype, tied or not, in one file or many."""

import json
import logging
import pathlib
import subprocess
import sys
import tempfile

from programs import MODEL, MUSTER, ROOT
from report import holds

TITLE = "A model's tensors from the headers and from config.json alone: transformers' own, to the byte"
IS_TIMED = False

WEIGHT_FILES = ("*.safetensors", "*.safetensors.index.json")


def estimate(source):
    """`weights` of `muster estimate SOURCE --json`, or the sentence it ended with."""
    done = subprocess.run([MUSTER, "estimate", source, "--json"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        return None, done.stderr.strip() or f"exit code {done.returncode}"
    return json.loads(done.stdout)["weights"], ""


def stored_in(folder):
    """(bytes, tensors) of the weight files by safetensors' own reader."""
    from safetensors import safe_open
    size, count = 0, 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            for name in file.keys():
                tensor = file.get_tensor(name)
                size, count = size + tensor.nbytes, count + 1
    return size, count


def in_memory(model):
    """(bytes, tensors) of the loaded model, each tied tensor once."""
    tensors = {id(tensor): tensor for tensor in model.state_dict(keep_vars=True).values()}
    return sum(tensor.nbytes for tensor in tensors.values()), len(tensors)


class Family:
    """What was compared for one model_type, and what differed."""

    def __init__(self):
        self.comparisons, self.faults, self.bytes = 0, [], 0

    def compare(self, what, found, sentence, source, truth, blocks):
        self.comparisons += 1
        if found is None:
            self.faults.append(f"{what}: {sentence}")
            return
        units = found["units"]
        claims = {
            "source": found["source"] == source,
            "bytes": found["stored_bytes"] == truth[0],
            "tensors": found["tensors"] == truth[1],
            "units": sum(unit["stored_bytes"] for unit in units) == truth[0],
            "blocks": [unit["name"] for unit in units if unit["kind"].lower() == "block"] == blocks,
        }
        self.bytes += truth[0]
        wrong = [name for name, is_so in claims.items() if not is_so]
        if wrong:
            self.faults.append(f"{what}: {', '.join(wrong)}: {found['stored_bytes']} bytes in {found['tensors']} tensors, "
                               f"not {truth[0]} in {truth[1]}")


def compare_model(family, fixtures, name, cls, config, dtype, scratch):
    folder = scratch / name
    model = fixtures.saved_and_loaded(cls, config, dtype, folder)
    blocks, memory = fixtures.blocks_of(model), in_memory(model)
    label = f"{name} {str(dtype).removeprefix('torch.')}"
    family.compare(f"{label}, one file", *estimate(folder), "headers", stored_in(folder), blocks)
    sharded = scratch / f"{name}-sharded"
    model.save_pretrained(sharded, max_shard_size=max(1, memory[0] // 3))
    if len(list(sharded.glob("*.safetensors"))) < 2:
        family.faults.append(f"{label}: transformers wrote no shards")
    family.compare(f"{label}, shards", *estimate(sharded), "headers", stored_in(sharded), blocks)
    if stored_in(folder)[0] != memory[0]:
        family.faults.append(f"{label}: transformers wrote {stored_in(folder)[0]} bytes of {memory[0]} in memory")
    for pattern in WEIGHT_FILES:
        for path in sharded.glob(pattern):
            path.unlink()
    family.compare(f"{label}, no weights", *estimate(sharded), "config", memory, blocks)
    family.compare(f"{label}, config.json", *estimate(folder / "config.json"), "config", memory, blocks)


def measure(report, arguments):
    sys.path.insert(0, str(ROOT / "tools" / "fixtures"))
    import torch
    import transformers
    import decoders as fixtures
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)

    families = {}
    for name, cls, config in [*fixtures.encoders(), *fixtures.decoders(), *fixtures.multimodal()]:
        family = families.setdefault(config.model_type, Family())
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            with tempfile.TemporaryDirectory(prefix="muster-facts-") as scratch:
                compare_model(family, fixtures, name, cls, config, dtype, pathlib.Path(scratch))
    for name, family in families.items():
        report.raw[name] = {"comparisons": family.comparisons, "bytes": family.bytes, "faults": family.faults}
        report.add(holds(name, not family.faults, family.faults[0] if family.faults else
                         f"{family.comparisons} of {family.comparisons} equal, {family.bytes:,} bytes", "equal to the byte"))
    report.add(holds("families", len(families) >= 18, str(len(families)), ">= 18"))
    real = Family()
    blocks = [f"encoder.layer.{i}" for i in range(6)]
    real.compare(MODEL.name, *estimate(MODEL), "headers", stored_in(MODEL), blocks)
    report.add(holds(MODEL.name, not real.faults, real.faults[0] if real.faults else f"{real.bytes:,} bytes", "equal to the byte"))
