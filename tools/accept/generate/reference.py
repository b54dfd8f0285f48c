"""llama.cpp and the real model, as the rows of `generate` use them."""

import hashlib
import os
import subprocess

from programs import BUILD, DEPS, PEER_PYTHON, PEERS

SMOLLM2 = DEPS / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
LLAMA_CPP = DEPS / "peers" / "llama.cpp"  # what ./accept builds: source/ and build/


def missing():
    """Why a row cannot run; None where it can."""
    if not SMOLLM2.exists():
        return f"{SMOLLM2.name} is not there: ./quickstart fetches it"
    if not (LLAMA_CPP / ".installed").exists():
        return "llama.cpp is not built: ./accept generate does it"
    return None


def llama_cpp(*arguments, stdout=subprocess.PIPE):
    environment = dict(os.environ, LLAMA_CPP_LIB_PATH=str(LLAMA_CPP / "build" / "bin"),
                       PYTHONPATH=str(LLAMA_CPP / "source"))
    return subprocess.run([PEER_PYTHON, "-B", PEERS / "llama_cpp_reference.py", *map(str, arguments)], check=True,
                          stdout=stdout, stderr=subprocess.DEVNULL, env=environment).stdout


def hash_of(command):
    """SHA-256 and size of what a command writes to standard output."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    digest, size = hashlib.sha256(), 0
    while part := process.stdout.read(1 << 20):
        digest.update(part)
        size += len(part)
    if process.wait() != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return digest.hexdigest(), size


def build(target):
    subprocess.run(["ninja", "-C", BUILD, target], check=True, stdout=subprocess.DEVNULL)
    return BUILD / "bin" / target
