"""Servers that others wrote, and ours, as `muster bench` meets them: how each is started, and why one is not there."""

import dataclasses
import pathlib
import subprocess

from bench import peer_packages
from generate.reference import LLAMA_CPP, SMOLLM2
from programs import MODEL, MUSTER, PEER_PYTHON, PEERS
from serve import row16_peers
from serve.row16_peers import CORES, QUIET

NAME = "smollm2"
OWN = "muster"
# vLLM keeps what its library compiles, and takes two minutes all the same.
START_LIMIT_S = 420
# By itself it leaves one of two cores to its scheduler.
VLLM_VARIABLES = {**QUIET, "VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_NO_USAGE_STATS": "1", "TRANSFORMERS_OFFLINE": "1",
                  "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, CORES))}
VLLM_MODEL = peer_packages.FOLDER / "smollm2-bf16"


@dataclasses.dataclass
class Peer:
    words: list                 # with {port}
    model: str                  # its name in requests
    variables: dict = dataclasses.field(default_factory=dict)
    extra: tuple = ()           # words for `muster bench`: what else this server is told
    reason: str | None = None   # why it cannot be had


def missing(reason):
    return Peer([], "", reason=reason)


def why_not_installed(name):
    """The last of what its installation by ./accept said."""
    said = peer_packages.FOLDER / f"{name}.said"
    words = " ".join(said.read_text(errors="replace").split()) if said.exists() else ""
    return f"it is not installed: {words[-300:]}" if words else "it is not installed: ./accept bench.10 does it"


def llama_server():
    program = LLAMA_CPP / "build" / "bin" / "llama-server"
    if not program.exists():
        return missing(why_not_installed("llama_server"))
    return Peer([str(program), "--model", str(SMOLLM2), "--host", "127.0.0.1", "--port", "{port}", "--threads", str(len(CORES)), "--parallel", "4",
                 "--ctx-size", "8192", "--offline"], NAME, extra=("--extra-body", '{"cache_prompt": false}'))


def why_no_folder():
    """Makes the model's folder for those who read no GGUF; why it cannot be made, None where it is there."""
    if (VLLM_MODEL / "tokenizer_config.json").exists():  # what is written last
        return None
    done = subprocess.run([PEER_PYTHON, "-B", PEERS / "gguf_folder.py", SMOLLM2, VLLM_MODEL], capture_output=True, text=True)
    return f"its model cannot be made of {pathlib.Path(SMOLLM2).name}: {done.stderr.strip()[-300:]}" if done.returncode != 0 else None


def vllm():
    python, reason = peer_packages.install("vllm")
    reason = reason or why_no_folder()
    if reason:
        return missing(reason)
    # Its command `vllm` does not start; the module does.
    return Peer([str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(VLLM_MODEL), "--served-model-name", NAME,
                 "--host", "127.0.0.1", "--port", "{port}", "--dtype", "bfloat16", "--max-model-len", "2048", "--no-enable-prefix-caching"],
                NAME, VLLM_VARIABLES)


def infinity():
    peer = row16_peers.ALL["infinity, torch"]
    if not peer.is_here():
        return missing(why_not_installed("infinity"))
    program = row16_peers.PEERS / peer.environment / peer.words[0]
    return Peer([str(program), *peer.words[1:]], MODEL.name, {**QUIET, **peer.variables})


def own(model, name, *words):
    return Peer([str(MUSTER), "serve", model, "--devices", f"{len(CORES)}xcpu", "--no-cache-enabled", "--no-prefix-cache",
                 "--listen", "127.0.0.1:{port}", *words], name)


def own_decoder():
    return own(f"{NAME}={SMOLLM2}", NAME, "--precision", "own")


def own_encoder():
    return own(str(MODEL), MODEL.name)


def started(name, peer, task):
    """As serve.row16_peers.started: port, process, seconds to the first answer."""
    target, body = {"generate": ("/v1/completions", {"model": peer.model, "prompt": "a first text", "max_tokens": 1}),
                    "embed": ("/v1/embeddings", {"model": peer.model, "input": "a first text"})}[task]
    return row16_peers.started(name, peer.words, peer.variables, target=target, body=body, limit_s=START_LIMIT_S)
