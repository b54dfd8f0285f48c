"""Greedy continuations by transformers of a GGUF file, dequantised to float32: MODEL.gguf PROMPTS.json OUT.json TOKENS."""

import json
import pathlib
import sys

import torch
import transformers


def main():
    model_file, prompts, out, tokens = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    where = dict(gguf_file=model_file.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(model_file.parent, dtype=torch.float32, **where).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_file.parent, **where)
    replies = []
    for prompt in json.loads(pathlib.Path(prompts).read_text()):
        ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            made = model.generate(ids, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, eos_token_id=None,
                                  pad_token_id=0)
        replies.append(tokenizer.decode(made[0, ids.shape[1]:], skip_special_tokens=True))
    pathlib.Path(out).write_text(json.dumps(replies))


if __name__ == "__main__":
    main()
