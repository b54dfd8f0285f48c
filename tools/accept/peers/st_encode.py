"""sentence-transformers as a peer.

    st_encode.py once MODEL TEXTS OUT.npy PRECISION     embeds a file of texts, a text a line
    st_encode.py serve MODEL TEXTS                      answers a JSON line per JSON line on standard input:
        {"precision": "fp32" | "bf16", "batch": 32}     one process, all cores
        {"pool": true, "precision": …, "batch": 32}     its pool of two processes, one thread each
        {"count": 1000, …}                              the first texts only
    The answer: {"wall_s", "cpu_s", "texts"}; loading models and starting pools is not counted.
"""

import json
import os
import sys
import time

import torch
from sentence_transformers import SentenceTransformer

TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def load(model, precision, device="cpu"):
    return SentenceTransformer(model, device=device, model_kwargs={"torch_dtype": TYPES[precision]})


def read_texts(path):
    with open(path, encoding="utf-8") as lines:
        return lines.read().splitlines()


def cpu_seconds(pids):
    """User and system seconds of this process and of `pids`, from /proc: a pool's workers are still alive."""
    ticks = 0
    for pid in [os.getpid(), *pids]:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, model, texts):
        self.model, self.texts = model, texts
        self.models, self.pools = {}, {}

    def answer(self, request):
        precision, batch = request["precision"], request["batch"]
        if precision not in self.models:
            self.models[precision] = load(self.model, precision)
            self.models[precision].encode(self.texts[:64])
        model, options, pids = self.models[precision], {}, []
        if request.get("pool"):
            if precision not in self.pools:
                self.pools[precision] = self.start_pool(model)
                model.encode(self.texts[:128], pool=self.pools[precision])
            options = {"pool": self.pools[precision]}
            pids = [process.pid for process in self.pools[precision]["processes"]]
        texts = self.texts[:request.get("count")]
        before, start = cpu_seconds(pids), time.monotonic()
        model.encode(texts, batch_size=batch, **options)
        return {"wall_s": time.monotonic() - start, "cpu_s": cpu_seconds(pids) - before, "texts": len(texts)}

    @staticmethod
    def start_pool(model):
        """Two processes, a core and a thread each. The children inherit both settings."""
        os.environ["OMP_NUM_THREADS"] = "1"
        pool = model.start_multi_process_pool(["cpu", "cpu"])
        del os.environ["OMP_NUM_THREADS"]
        cores = sorted(os.sched_getaffinity(0))
        for index, process in enumerate(pool["processes"]):
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                os.sched_setaffinity(int(thread), {cores[index % len(cores)]})
        return pool

    def close(self):
        for pool in self.pools.values():
            SentenceTransformer.stop_multi_process_pool(pool)


def main():
    mode, model, texts = sys.argv[1:4]
    if mode == "once":
        import numpy
        out, precision = sys.argv[4:6]
        vectors = load(model, precision).encode(read_texts(texts), batch_size=32, convert_to_numpy=False)
        numpy.save(out, torch.stack(list(vectors)).float().cpu().numpy())
        return
    server = Server(model, read_texts(texts))
    for line in sys.stdin:
        print(json.dumps(server.answer(json.loads(line))), flush=True)
    server.close()


if __name__ == "__main__":
    main()
