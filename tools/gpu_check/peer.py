"""sentence-transformers on the GPU: peer.py MODEL TEXTS OUT.npy [RUNS] prints a JSON line for each way of running it.

OUT.npy gets its float32 vectors. Only `encode` is timed: no imports, no loading, and a batch of each size before.
"""

import json
import sys
import time

import numpy
import torch
from sentence_transformers import SentenceTransformer

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
RUNS = (("fp32", 256), ("bf16", 32), ("bf16", 256), ("bf16", 1024))


def main():
    with open(sys.argv[2], encoding="utf-8") as lines:
        texts = lines.read().splitlines()
    torch.backends.cuda.matmul.allow_tf32 = False
    for precision, batch in RUNS[: int(sys.argv[4]) if len(sys.argv) > 4 else None]:
        model = SentenceTransformer(sys.argv[1], device="cuda", model_kwargs={"dtype": TYPES[precision]})
        model.encode(texts[:batch], batch_size=batch)
        torch.cuda.synchronize()
        begin = time.monotonic()
        vectors = model.encode(texts, batch_size=batch)
        torch.cuda.synchronize()
        wall = time.monotonic() - begin
        if precision == "fp32":
            numpy.save(sys.argv[3], vectors)
        print(json.dumps({"peer": "sentence-transformers", "precision": precision, "batch": batch, "texts": len(texts),
                          "wall_s": round(wall, 3)}), flush=True)


if __name__ == "__main__":
    main()
