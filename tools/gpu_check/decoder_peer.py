"""transformers on the GPU: decoder_peer.py MODEL prints a JSON line for one stream and for 32, 128 tokens after 128 each, in bf16.

Greedy, with its cache and without a stop. Only `generate` is timed, the second time it runs.
"""

import json
import sys
import time

import torch
from transformers import AutoModelForCausalLM


def main():
    model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16).to("cuda").eval()
    for streams in (1, 32):
        ids = torch.randint(3, model.config.vocab_size, (streams, 128), device="cuda")
        for is_timed in (False, True):
            torch.cuda.synchronize()
            begin = time.monotonic()
            with torch.inference_mode():
                model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=128, min_new_tokens=128, do_sample=False,
                               pad_token_id=0)
            torch.cuda.synchronize()
        wall = time.monotonic() - begin
        print(json.dumps({"peer": "transformers generate", "streams": streams, "wall_s": round(wall, 3),
                          "tokens_per_s": round(128 * streams / wall, 1)}), flush=True)


if __name__ == "__main__":
    main()
