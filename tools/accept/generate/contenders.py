"""Who takes part in the rows on speed: ours and the peers, each a server of completions of SmolLM2 on the same two cores, with its caches
of prompts off. llama.cpp and vLLM have servers of their own; around the libraries OpenVINO and ONNX Runtime stands the least one
(peers/completions_loop.py). All have the same weights, those of the file, in the type that each is named by.
"""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import signal
import subprocess

from bench import peer_packages, peer_servers
from bench.peer_servers import NAME, Peer, missing
from generate import streams
from generate.reference import LLAMA_CPP, SMOLLM2, llama_cpp
from programs import MUSTER, PEERS
from report import skipped
from serve.row16_peers import CORES, QUIET, tree_of

THREADS = str(len(CORES))
SLOT_TOKENS = 2048  # of llama-server, a client
TOKENIZER = peer_servers.VLLM_MODEL / "tokenizer.json"


def own(precision=None, *words):
    """One device with both cores; without a precision what it measures and takes by itself."""
    named = ["--precision", precision] if precision else []
    return Peer([str(MUSTER), "serve", f"{NAME}={SMOLLM2}", "--devices", "1xcpu", "--cores-per-device", THREADS, "--no-prefix-cache",
                 *named, *words, "--listen", "127.0.0.1:{port}"], NAME)


def makers(classes, peers):
    """Name -> what makes the contender: ours in a precision each, then the peers."""
    ours = {name: functools.partial(own, precision) for name, precision in classes.items()}
    return {**ours, **peers}


def is_own(peer):
    return bool(peer.words) and peer.words[0] == str(MUSTER)


def made(path, make):
    """`make` writes a file or folder, which gets its name when it is whole; why it cannot be had, None where it is there."""
    if path.exists():
        return None
    part = path.with_name(path.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        make(part)
    except subprocess.CalledProcessError as error:
        said = error.stderr or b""
        said = said if isinstance(said, str) else said.decode(errors="replace")
        return f"its model cannot be made: {said.strip()[-300:] or error}"
    part.rename(path)
    return None


def run(words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, env={**os.environ, **QUIET})


def llama_server(kind, slots=1):
    program = LLAMA_CPP / "build" / "bin" / "llama-server"
    if not program.exists():
        return missing(peer_servers.why_not_installed("llama_server"))
    model = peer_packages.FOLDER / f"smollm2-{kind}.gguf"
    if reason := made(model, lambda part: llama_cpp("convert", SMOLLM2, part, kind)):
        return missing(reason)
    return Peer([str(program), "--model", str(model), "--host", "127.0.0.1", "--port", "{port}", "--threads", THREADS, "--parallel", str(slots),
                 "--ctx-size", str(slots * SLOT_TOKENS), "--cache-ram", "0", "--offline"], NAME, extra=("--extra-body", '{"cache_prompt": false}'))


vllm = peer_servers.vllm


def library(environment, script, folder, make):
    """A library behind the least server."""
    python, reason = peer_packages.install(environment)
    reason = reason or peer_servers.why_no_folder() or made(folder, lambda part: make(python, part))
    if reason:
        return missing(reason)
    serve = ["serve"] if environment == "openvino" else []
    return Peer([str(python), "-B", str(PEERS / script), *serve, str(folder), str(TOKENIZER), "{port}", THREADS], NAME, QUIET)


def openvino(kind):
    return library("openvino", "serve_openvino.py", peer_packages.FOLDER / f"smollm2-openvino-{kind}", lambda python, part: run(
        [python, "-B", PEERS / "serve_openvino.py", "make", peer_servers.VLLM_MODEL, part, kind]))


def onnxruntime(kind):
    """By its builder, whose default on CPUs, accuracy level 4, is products of 8-bit integers: its fastest."""
    def make(python, part):
        cache = part.with_name(part.name + ".cache")
        run([python, "-B", "-m", "onnxruntime_genai.models.builder", "-i", peer_servers.VLLM_MODEL, "-o", part, "-p", kind, "-e", "cpu",
             "-c", cache])
        shutil.rmtree(cache, ignore_errors=True)
    return library("onnxruntime", "serve_onnx.py", peer_packages.FOLDER / f"smollm2-onnx-{kind}", make)


class Turn:
    """A server that is up. A peer stands still (SIGSTOP) but in its own turns: some of them spin when they have nothing to do."""

    def __init__(self, name, peer, port, process, start_s):
        self.name, self.peer, self.port, self.process, self.start_s = name, peer, port, process, start_s
        self.is_own = is_own(peer)
        self.fields = json.loads(peer.extra[1]) if peer.extra else {}

    def tell(self, number):
        for member in tree_of(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, number)

    def freeze(self):
        if not self.is_own:
            self.tell(signal.SIGSTOP)

    def thaw(self):
        if not self.is_own:
            self.tell(signal.SIGCONT)

    @contextlib.contextmanager
    def awake(self):
        self.thaw()
        try:
            yield
        finally:
            self.freeze()

    def is_gone(self):
        return self.process.poll() is not None

    def ask(self, prompt, tokens):
        """One reply of so many tokens; what is not one is an error."""
        reply = streams.ask(self, prompt, model=self.peer.model, max_tokens=tokens, ignore_eos=True, **self.fields)
        if not reply.is_whole():
            raise RuntimeError(f"{self.name} gave no whole reply: {reply.status} {reply.error}")
        return reply


@contextlib.contextmanager
def up(name, peer):
    with peer_servers.started(name, peer, "generate") as (port, process, start_s):
        turn = Turn(name, peer, port, process, start_s)
        turn.freeze()
        try:
            yield turn
        finally:
            turn.thaw()  # or it would not see that it is to end


def prepared(report, makers):
    """Name -> peer of those that can be had; the others are told. `makers`: name -> a function that gives the peer."""
    found = {}
    for name, make in makers.items():
        try:
            peer = make()
        except (OSError, subprocess.CalledProcessError) as error:
            peer = missing(str(error)[-300:])
        if peer.reason:
            report.add(skipped(name, peer.reason))
        else:
            found[name] = peer
    return found


def all_up(stack, report, peers):
    """Name -> turn, each up until the stack ends; a peer that does not start is told. Ours must."""
    turns = {}
    for name, peer in peers.items():
        try:
            turns[name] = stack.enter_context(up(name, peer))
        except (RuntimeError, OSError) as error:
            if is_own(peer):
                raise
            report.add(skipped(name, f"it does not start: {str(error)[-400:]}"))
            continue
        print(f"  note  {name} had its first answer after {turns[name].start_s:.1f} s", flush=True)
    return turns


def skip_reason():
    return None if pathlib.Path(SMOLLM2).exists() else f"{SMOLLM2.name} is not there: ./quickstart fetches it"
