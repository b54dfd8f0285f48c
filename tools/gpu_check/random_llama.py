"""random_llama.py OUT [tiny]: a model of Llama 3.2 1B's shape with random weights in bf16, as a folder of safetensors; tiny: a small one.

The head is a matrix of its own. A byte of a text is a token; what the model replies may have any of its tokens, so each has a text.
Sources: safetensors, README, "Format"; tokenizers, `tokenizer.json`; GPT-2, src/encoder.py, bytes_to_unicode.
"""

import json
import math
import pathlib
import random
import struct
import sys

IS_TINY = sys.argv[2:] == ["tiny"]
LAYERS, HIDDEN, INNER, HEADS, KV_HEADS, HEAD, VOCAB = (2, 64, 128, 4, 2, 16, 512) if IS_TINY else (16, 2048, 8192, 32, 8, 64, 32000)

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCAB, "hidden_size": HIDDEN,
          "intermediate_size": INNER, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
          "head_dim": HEAD, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
          "tie_word_embeddings": False, "torch_dtype": "bfloat16", "bos_token_id": 1, "eos_token_id": 2}


def shapes():
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        name = f"model.layers.{layer}."
        yield name + "input_layernorm.weight", (HIDDEN,)
        yield name + "self_attn.q_proj.weight", (HEADS * HEAD, HIDDEN)
        yield name + "self_attn.k_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield name + "self_attn.v_proj.weight", (KV_HEADS * HEAD, HIDDEN)
        yield name + "self_attn.o_proj.weight", (HIDDEN, HEADS * HEAD)
        yield name + "post_attention_layernorm.weight", (HIDDEN,)
        yield name + "mlp.gate_proj.weight", (INNER, HIDDEN)
        yield name + "mlp.up_proj.weight", (INNER, HIDDEN)
        yield name + "mlp.down_proj.weight", (HIDDEN, INNER)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCAB, HIDDEN)


def letters_of_bytes():
    """What stands for each byte: itself where it prints, else one behind U+00FF."""
    printing = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printing else next(others)) for byte in range(256)]


def tokenizer():
    special = ["<unk>", "<s>", "</s>"]
    texts = special + letters_of_bytes()
    texts += [f"<{number}>" for number in range(len(texts), VOCAB)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": number, "content": text, **added} for number, text in enumerate(special)],
            "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": {text: number for number, text in enumerate(texts)}, "merges": []}}


def tiny_values(shape, chance=random.Random(1)):
    """Ones of a vector, else random, in bf16: the upper half of a float. A rehearsal has no torch that Python can import: it wants packages
    that are not there."""
    values = (1.0 if len(shape) == 1 else chance.gauss(0, 0.02) for _ in range(math.prod(shape)))
    return b"".join(struct.pack("<f", value)[2:] for value in values)


def torch_values():
    """The same by torch, for as many as a model has."""
    import torch

    torch.manual_seed(1)

    def values(shape):
        made = torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * 0.02
        return made.to(torch.bfloat16).view(torch.int16).numpy().tobytes()

    return values


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(CONFIG, indent=1))
    (out / "tokenizer.json").write_text(json.dumps(tokenizer()))
    tensors, end = {}, 0
    for name, shape in shapes():
        size = 2 * math.prod(shape)
        tensors[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    head = json.dumps({"__metadata__": {"format": "pt"}, **tensors}, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    values_of = tiny_values if IS_TINY else torch_values()
    with open(out / "model.safetensors.part", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for name, shape in shapes():
            file.write(values_of(shape))
    (out / "model.safetensors.part").rename(out / "model.safetensors")


if __name__ == "__main__":
    main()
