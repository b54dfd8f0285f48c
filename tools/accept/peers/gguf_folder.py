"""Writes the model of a GGUF file as a folder in bfloat16, as vLLM reads one: MODEL.gguf FOLDER."""

import pathlib
import sys

import torch
import transformers
from tokenizers import pre_tokenizers

END = "<|im_end|>"  # of a reply of SmolLM2-Instruct, as its file says; transformers takes <|im_start|> for it


def main():
    model_file, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    where = dict(gguf_file=model_file.name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_file.parent, **where)
    tokenizer.eos_token = END
    # transformers loses the file's pre-tokeniser, which takes each digit alone.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    read = transformers.AutoModelForCausalLM.from_pretrained(model_file.parent, dtype=torch.float32, **where)
    # What was read from GGUF is marked as quantised and refuses to be saved: the same weights in a model that never was.
    if hasattr(read.config, "quantization_config"):
        del read.config.quantization_config
    model = type(read)(read.config).to(torch.bfloat16)
    model.load_state_dict(read.state_dict())
    model.config.eos_token_id = model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
