"""sentence-transformers behind FastAPI, as most tutorials write it, with a lock around `encode`.

    MODEL=FOLDER [DTYPE=bfloat16] [THREADS=1] uvicorn fastapi_st:app --port 8001 [--workers 2]

Without the lock it answers fewer single texts a second: forty threads of the pool share the interpreter.
"""

import base64
import os
import threading

import fastapi
import numpy
import pydantic
import torch
from sentence_transformers import SentenceTransformer

if "THREADS" in os.environ:
    torch.set_num_threads(int(os.environ["THREADS"]))
model = SentenceTransformer(os.environ["MODEL"], device="cpu",
                            model_kwargs={"dtype": getattr(torch, os.environ.get("DTYPE", "float32"))})
lock = threading.Lock()
app = fastapi.FastAPI()


class Request(pydantic.BaseModel):
    input: str | list[str]
    model: str = ""
    encoding_format: str = "float"


@app.post("/v1/embeddings")
def embeddings(request: Request):
    texts = [request.input] if isinstance(request.input, str) else request.input
    with lock:
        rows = model.encode(texts, convert_to_tensor=True).float().numpy()
    if request.encoding_format == "base64":
        values = [base64.b64encode(row.astype(numpy.float32).tobytes()).decode() for row in rows]
    else:
        values = rows.tolist()
    return {"object": "list", "model": request.model, "usage": {"prompt_tokens": 0, "total_tokens": 0},
            "data": [{"object": "embedding", "index": i, "embedding": value} for i, value in enumerate(values)]}
