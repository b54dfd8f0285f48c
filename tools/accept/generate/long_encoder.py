"""all-MiniLM-L6-v2 with its 512 positions repeated up to 4,096: no better at long texts, and as much to compute as a model that is."""

import json

from programs import MODEL, scratch

POSITIONS = 4096
TABLE = "embeddings.position_embeddings.weight"
CHANGED = {"config.json": "max_position_embeddings", "sentence_bert_config.json": "max_seq_length", "tokenizer_config.json": "model_max_length"}


def make():
    """The folder; what is last to be written is the model."""
    folder = scratch("long-encoder")
    if (folder / "model.safetensors").exists():
        return folder
    import numpy
    from safetensors.numpy import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    for path in MODEL.iterdir():
        if path.name not in ("model.safetensors", "tokenizer.json", *CHANGED) and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    for name, key in CHANGED.items():
        content = json.loads((MODEL / name).read_text())
        (folder / name).write_text(json.dumps({**content, key: POSITIONS}))
    tokenizer = json.loads((MODEL / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "truncation": None, "padding": None}))
    weights = {name: value for name, value in load_file(MODEL / "model.safetensors").items() if not name.endswith("position_ids")}
    table = weights[TABLE]
    weights[TABLE] = numpy.ascontiguousarray(numpy.tile(table, (-(-POSITIONS // len(table)), 1))[:POSITIONS])
    part = folder / "model.safetensors.part"
    save_file(weights, part, metadata={"format": "pt"})
    part.rename(folder / "model.safetensors")
    return folder
