"""sentence-transformers in Ray Serve: two replicas of one thread each, single texts batched by @serve.batch.

    ray_serve.py MODEL PORT
"""

import base64
import logging
import sys

import numpy
import ray
import torch
from ray import serve
from sentence_transformers import SentenceTransformer
from starlette.requests import Request

REPLICAS, BATCH_MAX, BATCH_WAIT_S = 2, 32, 0.01  # size and wait: the documentation's own example


@serve.deployment(num_replicas=REPLICAS, ray_actor_options={"num_cpus": 1}, max_ongoing_requests=100)
class Embedder:
    def __init__(self, model):
        torch.set_num_threads(1)
        self.model = SentenceTransformer(model, device="cpu")

    @serve.batch(max_batch_size=BATCH_MAX, batch_wait_timeout_s=BATCH_WAIT_S)
    async def encode(self, requests):
        rows = self.model.encode([text for texts in requests for text in texts])
        ends = numpy.cumsum([len(texts) for texts in requests])[:-1]
        return numpy.split(rows, ends)

    async def __call__(self, request: Request):
        body = await request.json()
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        rows = await self.encode(texts)
        if body.get("encoding_format") == "base64":
            values = [base64.b64encode(row.astype(numpy.float32).tobytes()).decode() for row in rows]
        else:
            values = rows.tolist()
        return {"object": "list", "model": body.get("model", ""), "usage": {"prompt_tokens": 0, "total_tokens": 0},
                "data": [{"object": "embedding", "index": i, "embedding": value} for i, value in enumerate(values)]}


def main():
    model, port = sys.argv[1], int(sys.argv[2])
    ray.init(num_cpus=REPLICAS, include_dashboard=False, logging_level=logging.ERROR, configure_logging=False)
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(Embedder.bind(model), route_prefix="/v1/embeddings", blocking=True)


if __name__ == "__main__":
    main()
