"""A random BERT cross-encoder of two layers, written without torch: for what clients make of scores, not for what they mean."""

import json
import pathlib
import shutil
import struct

import numpy

HIDDEN, LAYERS, HEADS, INNER, LENGTH_MAX = 32, 2, 4, 64, 128


def _shapes(vocab_size):
    """Name -> shape of every weight, as transformers' BertForSequenceClassification has them."""
    shapes = {
        "bert.embeddings.word_embeddings.weight": (vocab_size, HIDDEN),
        "bert.embeddings.position_embeddings.weight": (LENGTH_MAX, HIDDEN),
        "bert.embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "bert.pooler.dense.weight": (HIDDEN, HIDDEN), "bert.pooler.dense.bias": (HIDDEN,),
        "classifier.weight": (1, HIDDEN), "classifier.bias": (1,),
    }
    norms = ["bert.embeddings.LayerNorm"]
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes[f"{at}.{name}.weight"], shapes[f"{at}.{name}.bias"] = (HIDDEN, HIDDEN), (HIDDEN,)
        shapes[f"{at}.intermediate.dense.weight"], shapes[f"{at}.intermediate.dense.bias"] = (INNER, HIDDEN), (INNER,)
        shapes[f"{at}.output.dense.weight"], shapes[f"{at}.output.dense.bias"] = (HIDDEN, INNER), (HIDDEN,)
        norms += [f"{at}.attention.output.LayerNorm", f"{at}.output.LayerNorm"]
    for name in norms:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (HIDDEN,), (HIDDEN,)
    return shapes


def _write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + values.nbytes]}
        offset += values.nbytes
    words = json.dumps(header).encode()
    words += b" " * (-len(words) % 8)
    path.write_bytes(struct.pack("<Q", len(words)) + words + b"".join(values.tobytes() for values in tensors.values()))


def write_reranker(folder, model, seed=1):
    """A folder of such a model with the tokenizer of `model`."""
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(model / name, folder)
    vocab_size = json.loads((model / "config.json").read_text())["vocab_size"]
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": vocab_size, "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu",
        "max_position_embeddings": LENGTH_MAX, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}))
    random = numpy.random.default_rng(seed)
    tensors = {name: random.standard_normal(shape, dtype=numpy.float32) * numpy.float32(0.3) for name, shape in _shapes(vocab_size).items()}
    _write_safetensors(folder / "model.safetensors", tensors)
    return folder
