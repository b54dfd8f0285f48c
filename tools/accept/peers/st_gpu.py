"""sentence-transformers in bf16 on one GPU: st_gpu.py MODEL TEXTS prints {"wall_s", "texts"} of encode alone."""

import json
import sys
import time

import torch
from sentence_transformers import SentenceTransformer

BATCH = 256


def main():
    with open(sys.argv[2], encoding="utf-8") as lines:
        texts = lines.read().splitlines()
    model = SentenceTransformer(sys.argv[1], device="cuda", model_kwargs={"torch_dtype": torch.bfloat16})
    model.encode(texts[:BATCH], batch_size=BATCH)
    torch.cuda.synchronize()
    start = time.monotonic()
    model.encode(texts, batch_size=BATCH)
    torch.cuda.synchronize()
    print(json.dumps({"wall_s": time.monotonic() - start, "texts": len(texts)}))


if __name__ == "__main__":
    main()
