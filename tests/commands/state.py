"""What ./quickstart leaves, and the files that the printed commands call somebody's own: a folder to run them in.

With stand-ins (./test) a worker that returns sums instead of vectors, a model of a few kilobytes, a docker client that starts
nothing. With the real programs (./accept house.4) what lies in .deps.
"""

import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/accept"))

from house.hub_server import Hub

MODEL = ".deps/models/all-MiniLM-L6-v2"
DECODER = ".deps/models/SmolLM2-135M-Instruct.Q4_1.gguf"
PULLED = "sentence-transformers/all-MiniLM-L6-v2"
START_LIMIT_S = 120

# What a command says of itself when it is asked for its containers: those of the deploy examples are there.
DOCKER = """#!/bin/sh
case "$1" in
  run) echo 0123456789abcdef ;;
  inspect) echo 'running 0' ;;
  ps) printf '0123\\tmuster-tgi-opt-1-3b\\tmuster-tgi-opt-1-3b\\ttgi\\tfacebook/opt-1.3b\\trunning\\tUp 2 minutes\\t127.0.0.1:8080->80/tcp\\n' ;;
  logs) echo 'a line of the log' ;;
esac
"""


def free_port():
    """Below the ports that the system hands out, so that nobody is given it before it is used."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # taken


def long_context(gguf):
    """A GGUF file whose model allows 131,072 tokens: the value behind its key, of type uint32 (4)."""
    key = b"llama.context_length" + struct.pack("<I", 4)
    at = gguf.index(key) + len(key)
    return gguf[:at] + struct.pack("<I", 131072) + gguf[at + 4:]


class State:
    """One folder with one hub and one server at most; `close` ends both and removes it."""

    def __init__(self, build, has_stand_ins):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-printed-"))
        self.build, self.server, self.log_count = pathlib.Path(build).resolve(), None, 0
        self.chat_server = None
        self.port, self.metrics_port = free_port(), free_port()
        self.make_programs()
        self.make_deps(has_stand_ins)
        self.make_own_files()
        self.hub = Hub(self.make_hub(), PULLED)
        self.environment = self.make_environment(has_stand_ins)

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def make_programs(self):
        """build/bin as in a clone; the same programs on the PATH; the folders of the clone that commands name."""
        (self.folder / "build").mkdir()
        for name in ("bin", "lib"):
            (self.folder / "build" / name).symlink_to(self.build / name)
        (self.folder / "bin").symlink_to(self.build / "bin")
        (self.folder / "lib").symlink_to(self.build / "lib")
        for name in ("tests", "examples", "packaging", "quickstart", "test", "accept", "package"):
            (self.folder / name).symlink_to(ROOT / name)
        self.write("stand-ins/docker", DOCKER, 0o755)  # never the machine's own: it would start containers

    def make_deps(self, has_stand_ins):
        (self.folder / ".deps/models").mkdir(parents=True)
        texts = "\n".join(f"package-{i}: a tool that does the {i}th of many things" for i in range(40)) + "\n"
        if has_stand_ins:
            shutil.copytree(ROOT / "tests/models/tiny", self.folder / MODEL)
            self.write("torch/lib/libtorch_cpu.so", "")
            self.write("torch/version.py", "__version__ = '2.11.0+cpu'\n")
        else:
            (self.folder / MODEL).symlink_to(ROOT / MODEL)
            (self.folder / DECODER).symlink_to(ROOT / DECODER)
            (self.folder / "torch").symlink_to(next((ROOT / ".deps/venv/lib").glob("python3.*/site-packages/torch")))
            whole = ROOT / ".deps/corpus/packages.txt"
            if whole.exists():
                texts = "".join(line + "\n" for line in whole.read_text().splitlines()[:1000])
        self.write(".deps/corpus/packages.txt", texts)
        (self.folder / ".deps/out").mkdir()

    def make_own_files(self):
        """What the examples take for granted: files of whoever types them."""
        notes = "The keys are under the mat.\nThe letter is in the drawer.\nA train leaves at noon.\n"
        lines = "".join(f'{{"body": "text {i}", "doc_id": "d{i}"}}\n' for i in range(5))
        for name in ("notes.txt", "YOUR.txt", "TEXTS.txt"):
            self.write(name, notes)
        self.write("questions.txt", "where are the keys?\nwhen does it leave?\n")
        self.write("corpus.jsonl", lines)
        news = [("Floods after a week of rain", "de", 2021), ("The election is decided", "en", 2024), ("Rivers fall again", "fr", 2022)]
        self.write("news.jsonl", "".join(json.dumps({"id": f"n{i}", "text": text, "lang": lang, "year": year, "meta": {"year": year}}) + "\n"
                                         for i, (text, lang, year) in enumerate(news)))
        self.write("messages.json", '[{"role": "user", "content": "Why is the sky blue?"}]')
        subprocess.run(["zstd", "-q", "corpus.jsonl"], cwd=self.folder, check=True)
        (self.folder / "news.gz").write_bytes(gzip.compress(notes.encode()))
        (self.folder / "my-model").symlink_to(self.folder / MODEL)
        self.write("train.py", "print(sum(i * i for i in range(100000)))\n")
        (self.folder / "model.gguf").write_bytes(long_context((ROOT / "src/modelfile/corpus/gguf_fuzz/llama.gguf").read_bytes()))
        shutil.copy(ROOT / "tests/plans/models/llama-3-8b/config.json", self.folder / "config.json")

    def make_hub(self):
        """The files of the model, and one of those that --file names."""
        folder = self.folder / "hub"
        shutil.copytree((self.folder / MODEL).resolve(), folder, copy_function=os.symlink)
        (folder / "model-Q4_K_M.gguf").symlink_to(self.folder / "model.gguf")
        return folder

    def make_environment(self, has_stand_ins):
        (self.folder / "home").mkdir()
        environment = {
            "PATH": f"{self.folder}/stand-ins:{self.folder}/build/bin:{os.environ['PATH']}", "HOME": f"{self.folder}/home",
            "HF_ENDPOINT": self.hub.endpoint, "MUSTER_LISTEN": f"127.0.0.1:{self.port}", "TERM": "xterm", "LANG": "C.UTF-8",
            # The machine that an example means, where it names one with NVIDIA GPUs.
            "FAKENVML_SCENARIO": str(ROOT / "tests/fake_machines/busy-8xh200.json")}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                environment[name] = os.environ[name]
        if has_stand_ins:
            dim = json.loads((self.folder / MODEL / "config.json").read_text())["hidden_size"]
            environment |= {"MUSTER_WORKER_PROGRAM": str(self.build / "bin/zero_worker"), "MUSTER_TORCH_ROOT": f"{self.folder}/torch",
                            "ZERO_WORKER": f"echo dim={dim}"}
        return environment

    def run(self, line, limit_s=120):
        """(exit code, what it said) of a line of bash, run in the folder. Its processes end with it."""
        process = subprocess.Popen(["bash", "-o", "pipefail", "-c", line], cwd=self.folder, env=self.environment, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            return 124, said + f"\n(still running after {limit_s} s)"
        return process.returncode, said

    def start(self, line):
        """Starts a line that goes on until it is ended; what it says goes to a file."""
        self.log_count += 1
        log = self.folder / f"background-{self.log_count}.log"
        with log.open("w") as file:
            process = subprocess.Popen(["bash", "-c", "exec " + line], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                       stdout=file, stderr=file, start_new_session=True)
        return process, log

    def wait_for(self, process, log, is_there):
        """None when it is there, else what the process said."""
        end = time.monotonic() + START_LIMIT_S
        while process.poll() is None and time.monotonic() < end:
            if is_there():
                return None
            try:  # it changes when the process says or ends something
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                pass
        return f"exit code {process.poll()}: {log.read_text()}"

    def answers(self, url):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def start_server(self, line):
        """None, or what is wrong. A server that runs already is ended."""
        wrong = self.stop_server()
        if wrong:
            return wrong
        process, log = self.start(line)
        self.server = process, log
        return self.wait_for(process, log, lambda: self.answers(f"http://127.0.0.1:{self.port}/readyz"))

    def chat_port(self):
        """The port of a server that generates, one for all lines: a stand-in with answers of its own."""
        if self.chat_server is None:
            self.chat_server = self.start("build/bin/muster-null-server --listen 127.0.0.1:0")
            said = re.compile(r"listening on http://127\.0\.0\.1:(\d+)")
            wrong = self.wait_for(*self.chat_server, lambda: said.search(self.chat_server[1].read_text()))
            if wrong:
                raise RuntimeError(wrong)
            self.chat_server += (said.search(self.chat_server[1].read_text())[1],)
        return self.chat_server[2]

    def stop_server(self):
        if self.server is None:
            return None
        process, log = self.server
        self.server = None
        return end(process, log, signal.SIGTERM, 0)

    def close(self):
        wrong = self.stop_server()
        if self.chat_server is not None:
            end(*self.chat_server[:2], signal.SIGTERM, 0)
        self.hub.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return wrong


def end(process, log, number, expected):
    """Ends a process by a signal; None, or what is wrong with how it ended."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        code = process.wait(timeout=START_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return f"it did not end after signal {number}: {log.read_text()}"
    return None if code == expected else f"it ended with {code} and not {expected}: {log.read_text()}"
