"""The load generator, muster-worker without a parent, and bodies to send."""

import json
import os
import subprocess

from programs import BUILD, MODEL, scratch
from texts import corpus_lines


def build(*targets):
    subprocess.run(["ninja", "-C", BUILD, *targets], check=True, stdout=subprocess.DEVNULL)


def write_bodies(name, per_request, count, model="all-MiniLM-L6-v2", encoding="float", texts=None):
    """A JSON body a line: `count` requests of `per_request` texts of the corpus, none twice as long as it lasts."""
    lines = texts or corpus_lines()
    path = scratch(name)
    with open(path, "w", encoding="utf-8") as out:
        for i in range(count):
            picked = [lines[(i * per_request + k) % len(lines)] for k in range(per_request)]
            out.write(json.dumps({"model": model, "input": picked, "encoding_format": encoding}) + "\n")
    return path


def run(server, bodies, *flags, path="/v1/embeddings", seconds=10, connections=8, timeout_s=None):
    """One run of serving_load: its JSON report."""
    out = scratch("load.json")
    out.unlink(missing_ok=True)
    subprocess.run([BUILD / "bin" / "serving_load", "--url", f"http://127.0.0.1:{server.port}{path}", "--bodies", bodies,
                    "--connections", str(connections), "--seconds", str(seconds), "--json", out, *map(str, flags)],
                   check=True, stdout=subprocess.DEVNULL, timeout=timeout_s or seconds + 120)
    return json.loads(out.read_text())


def worker_alone(texts, *flags, cores="0;1", precision="fp32", batch=32, seconds=10):
    """muster-worker fed without a parent: its JSON report."""
    root = os.environ["MUSTER_TORCH_ROOT"]
    done = subprocess.run([BUILD / "bin" / "worker_direct", "--worker", BUILD / "bin" / "muster-worker", "--torch-root", root,
                           "--model", MODEL, "--texts", texts, "--cores", cores, "--precision", precision,
                           "--batch", str(batch), "--seconds", str(seconds), *map(str, flags)],
                          check=True, capture_output=True, text=True, timeout=seconds + 120)
    return json.loads(done.stdout)


def served_precision(server):
    """The precision that the server chose for its first model."""
    models = json.loads(server.get("/v1/models")[1])["data"]
    return models[0]["precision"]
