"""What a hostile peer can make the server hold, alone and all at once beside a good client."""

import contextlib
import json
import math
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import socket
import struct
import threading
import time

from programs import MODEL, ROOT, scratch, stand_in
from report import at_most, holds
from serve.running import Server, serving

TITLE = "Attacks, each alone and all at once for ten minutes: bounded memory, live probes, a good client served, no descriptor left"
IS_TIMED = False

TOGETHER_S = int(os.environ.pop("GROUND_ATTACK_SECONDS", "600"))  # popped: muster refuses variables it does not know
ALONE_S = 8
MEMORY_MOST_MIB, CACHE_MIB, CONNECTIONS_MOST = 256, 64, 400
LESS_MEMORY_MIB, LESS_CACHE_MIB = 80, 8  # less than the attack that takes most takes under the others
LIVEZ_P99_MS = 20
BATCH_TIME_MS = 100  # the default of batch_time: what a query may wait for
MEBIBYTE = 1 << 20
PROCESSES = multiprocessing.get_context("spawn")  # the one that forks would copy threads' locks


def connect(port, receive_buffer=None):
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(5)
    client.connect(("127.0.0.1", port))
    return client


def head(path, *lines):
    return ("\r\n".join([f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", *lines]) + "\r\n\r\n").encode()


def post(path, body):
    return head(path, f"Content-Length: {len(body)}") + body


def send_until(client, piece, is_over, most):
    """Sends `piece` again and again until the server ends it, `most` bytes are sent or the time is over."""
    sent = 0
    with contextlib.suppress(OSError):
        while not is_over() and sent < most:
            sent += client.send(piece)
    return sent


def endless(begin, piece):
    def attack(port, is_over):
        while not is_over():
            with contextlib.suppress(OSError), connect(port) as client:
                client.sendall(begin)
                send_until(client, piece, is_over, 1000 * MEBIBYTE)
    return attack


def unfinished_bodies(path):
    def attack(port, is_over):
        """60 bodies of 16 MiB that lack their last byte."""
        size, piece = 16 * MEBIBYTE, b" " * MEBIBYTE
        while not is_over():
            clients = []
            for _ in range(60):
                with contextlib.suppress(OSError):
                    client = connect(port)
                    clients.append(client)
                    client.sendall(head(path, f"Content-Length: {size}"))
                    send_until(client, piece, is_over, size - MEBIBYTE)
            wait(is_over, 3)
            for client in clients:
                client.close()
    return attack


def wait(is_over, seconds):
    end = time.monotonic() + seconds
    while not is_over() and time.monotonic() < end:
        time.sleep(0.05)


def cached_unread(port, is_over):
    """100 clients ask for 2,048 texts that are in the cache, and do not read."""
    body = json.dumps({"model": "", "input": [f"w{i}" for i in range(2048)]}).encode()
    with contextlib.suppress(OSError), connect(port) as client:  # the first one fills the cache
        client.settimeout(60)
        client.sendall(post("/v1/embeddings", body))
        client.recv(1)
    while not is_over():
        clients = []
        for _ in range(100):
            with contextlib.suppress(OSError):
                client = connect(port, receive_buffer=4096)
                clients.append(client)
                client.sendall(post("/v1/embeddings", body))
        wait(is_over, 3)
        for client in clients:
            client.close()


def silent(port, is_over):
    """As many connections that say nothing as there may be."""
    while not is_over():
        clients = []
        for _ in range(CONNECTIONS_MOST):
            with contextlib.suppress(OSError):
                clients.append(connect(port))
        wait(is_over, 3)
        for client in clients:
            client.close()


def slow_heads(port, is_over):
    clients = []
    with contextlib.suppress(OSError):
        clients = [connect(port) for _ in range(100)]
    for client in clients:
        client.setblocking(False)
    while not is_over():
        for number, client in enumerate(clients):
            try:
                client.send(b"GET /livez HTTP/1.1\r\nX: " if number % 7 == 0 else b"x")
            except OSError:
                client.close()
                with contextlib.suppress(OSError):
                    clients[number] = connect(port)
                    clients[number].setblocking(False)
        wait(is_over, 0.5)
    for client in clients:
        client.close()


def ask_again(path, make_body):
    def attack(port, is_over):
        request = post(path, make_body())
        while not is_over():
            with contextlib.suppress(OSError), connect(port) as client:
                client.settimeout(60)
                client.sendall(request)
                answer = client.recv(MEBIBYTE)
                if answer[9:12] in (b"400", b"404", b"413", b"422"):  # it is no attack then
                    raise RuntimeError(f"{path}: {answer[:600]!r}")
    return attack


def marks_query():
    """A query of a mebibyte of combining marks, for 2,048 documents."""
    return json.dumps({"model": "cross", "query": "e" + "\u0301" * (MEBIBYTE // 2 - 1), "documents": [f"d{i}" for i in range(2048)]}, ensure_ascii=False).encode()


def long_tokenize():
    """15 texts of a mebibyte: the longest text there may be, and as many as a body holds."""
    return json.dumps({"input": ["a " * (MEBIBYTE // 2)] * 15, "model": ""}).encode()


CHUNKED = head("/v1/embeddings", "Transfer-Encoding: chunked")
BODIES = "60 unfinished bodies to /v1/embeddings"  # what takes most: 150 MiB
ATTACKS = {
    "endless extensions of a chunk": endless(CHUNKED + b"5;", b"a" * 65536),
    "endless trailers": endless(CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"a" * 65536),
    "60 unfinished bodies to no route": unfinished_bodies("/nowhere"),
    BODIES: unfinished_bodies("/v1/embeddings"),
    "100 clients that do not read 2,048 cached texts": cached_unread,
    "silent connections up to the limit": silent,
    "slow heads": slow_heads,
    "rerank of a query of combining marks": ask_again("/v1/rerank", marks_query),
    "tokens of 15 texts of 1 MiB": ask_again("/v1/tokenize", long_tokenize),
}


def run_attack(name, port, seconds):
    """In a process of its own, behind whoever measures."""
    os.nice(10)
    end = time.monotonic() + seconds
    ATTACKS[name](port, lambda: time.monotonic() > end)


def attackers(names, port, seconds):
    made = [PROCESSES.Process(target=run_attack, args=(name, port, seconds)) for name in names]
    for process in made:
        process.start()
    for process in made:
        process.join()
    return [name for name, process in zip(names, made) if process.exitcode != 0]


def keep_asking(port, method, path, body, pause_s, is_over, pipe):
    """One question again and again, in a process that does nothing else: milliseconds of good answers, and what failed."""
    server, taken_ms, failures, count = Server(None, port, None), [], [], 0
    while not is_over.wait(pause_s):
        count += 1
        question = body and {**body, "input": f"{body['input']} {os.getpid()} {count}"}
        begin = time.monotonic()
        try:
            status, answer = server.call(method, path, question)
            if status == 200:
                taken_ms.append((time.monotonic() - begin) * 1000)
            else:
                failures.append(f"{path}: {status}: {answer[:100]!r}")
        except OSError as error:
            failures.append(f"{path}: {error}")
    pipe.send((taken_ms, failures))


class Watcher:
    """Asks /livez and one small query again and again, each from a clean process, and looks at the server's memory."""

    QUERY = {"model": "", "input": "good text", "lane": "interactive"}

    def __init__(self, server):
        self.server, self.over = server, PROCESSES.Event()
        self.livez_ms, self.query_ms, self.failures, self.rss_kib = [], [], [], []
        self.pipes, self.askers = [], []
        for question in (("GET", "/livez", None, 0.02), ("POST", "/v1/embeddings", self.QUERY, 0.05)):
            here, there = PROCESSES.Pipe(duplex=False)
            self.pipes.append(here)
            self.askers.append(PROCESSES.Process(target=keep_asking, args=(server.port, *question, self.over, there)))
        self.looker = threading.Thread(target=self.look)

    def look(self):
        while not self.over.wait(0.05):
            self.rss_kib.append(rss_kib(self.server.process.pid))

    def __enter__(self):
        for each in (*self.askers, self.looker):
            each.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        (self.livez_ms, lost), (self.query_ms, lost_too) = (pipe.recv() for pipe in self.pipes)
        self.failures = lost + lost_too
        for each in (*self.askers, self.looker):
            each.join()


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def p99(values):
    return sorted(values)[int(len(values) * 0.99)] if values else float("inf")


def seconds_until_descriptors(server, count, limit_s=20):
    """How long until the server has no more than `count` open; None when it still has more by then."""
    begin = time.monotonic()
    while time.monotonic() - begin < limit_s:
        if descriptors(server.process.pid) <= count:
            return time.monotonic() - begin
        time.sleep(0.1)
    return None


def cross_encoder():
    """A folder of a tiny cross-encoder with MiniLM's tokenizer. The worker computes nothing: every weight is 0."""
    folder = scratch("attack-models") / "cross"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(MODEL / name, folder)
    tiny = ROOT / "src" / "engine" / "testdata" / "bert_cross"
    words = json.loads((MODEL / "config.json").read_text())["vocab_size"]
    (folder / "config.json").write_text(json.dumps({**json.loads((tiny / "config.json").read_text()), "vocab_size": words}))
    with open(tiny / "model.safetensors", "rb") as weights:
        tensors = json.loads(weights.read(struct.unpack("<Q", weights.read(8))[0]))
    tensors["bert.embeddings.word_embeddings.weight"]["shape"][0] = words
    end = 0
    for name, tensor in tensors.items():
        if name != "__metadata__":
            size = 4 * math.prod(tensor["shape"])
            tensor["data_offsets"], end = [end, end + size], end + size
    head = json.dumps(tensors).encode()
    with open(folder / "model.safetensors", "wb") as weights:
        weights.write(struct.pack("<Q", len(head)) + head)
        weights.truncate(weights.tell() + end)
    return folder


@contextlib.contextmanager
def attacked(memory_most_mib=MEMORY_MOST_MIB, cache_mib=CACHE_MIB):
    flags = ["--devices", "2xcpu", "--worker-program", stand_in("zero_worker"), "--cache-dir", scratch("attack-cache"),
             "--cache-size", f"{cache_mib}MiB", "--memory-most", f"{memory_most_mib}MiB", "--connections-most", CONNECTIONS_MOST]
    with serving(MODEL, cross_encoder(), *flags, name="attacked", environment={"ZERO_WORKER": "echo dim=384"}) as server:
        server.embed(["warm"])
        yield server


def judge_memory(report, name, watcher, base_kib, most_mib=MEMORY_MOST_MIB + CACHE_MIB):
    grown = (max(watcher.rss_kib) - base_kib) / 1024
    report.add(at_most(f"{name}: memory beside the models", grown, most_mib, 0, " MiB"))


def alone(report, attack, memory_most_mib=MEMORY_MOST_MIB, cache_mib=CACHE_MIB):
    name = attack if memory_most_mib == MEMORY_MOST_MIB else f"--memory-most {memory_most_mib}MiB, {attack}"
    with attacked(memory_most_mib, cache_mib) as server:
        base_kib, before = rss_kib(server.process.pid), descriptors(server.process.pid)
        with Watcher(server) as watcher:
            broken = attackers([attack], server.port, ALONE_S)
        left_s = seconds_until_descriptors(server, before)
        report.raw[name] = {"rss_kib": [base_kib, max(watcher.rss_kib)], "descriptors": [before, descriptors(server.process.pid)],
                            "livez_p99_ms": p99(watcher.livez_ms), "query_p99_ms": p99(watcher.query_ms), "failures": watcher.failures[:20]}
        judge_memory(report, name, watcher, base_kib, memory_most_mib + cache_mib)
        report.add(at_most(f"{name}: p99 of /livez", p99(watcher.livez_ms), LIVEZ_P99_MS, 2, " ms"))
        report.add(holds(f"{name}: probes and good queries that failed", not watcher.failures, f"{len(watcher.failures)} {watcher.failures[:1] or ''}", "0"))
        report.add(holds(f"{name}: it attacks", not broken, str(broken or "yes"), "yes"))
        report.add(holds(f"{name}: descriptors as before", left_s is not None, f"after {left_s:.1f} s" if left_s is not None else "not"))
        report.add(holds(f"{name}: exit code", server.stop() == 0, str(server.process.returncode), "0"))


def together(report):
    with attacked() as server:
        base_kib, before = rss_kib(server.process.pid), descriptors(server.process.pid)
        with Watcher(server) as quiet:
            time.sleep(5)
        with Watcher(server) as watcher:
            broken = attackers(ATTACKS, server.port, TOGETHER_S)
        left_s = seconds_until_descriptors(server, before)
        metrics = [line for line in server.get("/metrics")[1].decode().splitlines() if line.startswith("muster_http_")]
        code = server.stop()
    report.raw["together"] = {"rss_kib": [base_kib, max(watcher.rss_kib)], "livez_ms": watcher.livez_ms, "query_ms": watcher.query_ms,
                              "quiet_query_ms": quiet.query_ms, "failures": watcher.failures, "metrics": metrics}
    report.add(holds("all at once: they attack to the end", not broken, str(broken or "yes"), "yes"))
    judge_memory(report, f"all at once for {TOGETHER_S} s", watcher, base_kib)
    report.add(at_most("all at once: p99 of /livez", p99(watcher.livez_ms), LIVEZ_P99_MS, 2, " ms"))
    report.add(at_most("all at once: p99 of a good query", p99(watcher.query_ms), p99(quiet.query_ms) + BATCH_TIME_MS, 2, " ms"))
    report.add(holds("all at once: probes and good queries that failed", not watcher.failures,
                     f"{len(watcher.failures)} of {len(watcher.failures) + len(watcher.livez_ms) + len(watcher.query_ms)} {watcher.failures[:1] or ''}", "0"))
    report.add(holds("all at once: descriptors as before", left_s is not None, f"after {left_s:.1f} s" if left_s is not None else "not"))
    report.add(holds("all at once: exit code", code == 0, str(code), "0"))


def measure(report, _arguments):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for name in ATTACKS:
        alone(report, name)
    alone(report, BODIES, LESS_MEMORY_MIB, LESS_CACHE_MIB)
    together(report)
