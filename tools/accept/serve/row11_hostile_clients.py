"""Clients that are slow, many, or speak nonsense, and a good one beside them."""

import contextlib
import json
import os
import pathlib
import re
import resource
import socket
import subprocess
import threading
import time

from programs import MODEL, ROOT, scratch
from report import at_least, at_most, holds
from serve.running import serving

TITLE = "Slow headers and bodies, 10,000 idle connections, pipelining, hostile JSON and lengths, bad TLS, slow readers; the parser under fuzz"
IS_TIMED = False

IDLE, IDLE_KIB = 10_000, 64
SLOW, REQUEST_LIMIT_S, WRITE_STALL_S, SLACK_S = 100, 10, 30, 3
PIPELINED = 2000
GOOD_S = 1.0
# Each well within the queue budget of 2 s on a slow machine, together more than two sockets' buffers hold.
LARGE_TEXTS, LARGE_ANSWERS = 500, 32
FUZZ_S, FUZZ_LONG_S = 60, 600


def connect(port, receive_buffer=None):
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.settimeout(60)
    client.connect(("127.0.0.1", port))
    return client


def read_all(client):
    """What comes until the server closes or cuts the connection."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := client.recv(1 << 16):
            data += chunk
    return data


def status_of(answer):
    """408 of b"HTTP/1.1 408 ..."; None when it was cut without a word."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[1]) if found else None


def ask(port, data):
    """The status for `data`, and whether the server closed within the time that a slow one would get."""
    with connect(port) as client:
        with contextlib.suppress(OSError):  # it may have been cut already
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
        return status_of(read_all(client))


def post(body, *headers):
    head = ["POST /v1/embeddings HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    if not any(line.lower().startswith(("content-length", "transfer-encoding")) for line in headers):
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class GoodClient:
    """Asks for one text without pause on one thread, each time another, and keeps what came and when."""

    def __init__(self, server):
        self.server, self.seconds, self.failures, self.is_over = server, [], [], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        count = 0
        while not self.is_over.wait(0.02):
            count += 1
            begin = time.monotonic()
            try:
                self.server.embed([f"good text {count}"])
                self.seconds.append(time.monotonic() - begin)
            except (OSError, RuntimeError) as error:
                self.failures.append(str(error))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def nonsense():
    """What is sent whole -> the statuses that are right for it; None: cut."""
    text = b'{"model": "", "input": "a"}'
    return {
        "no request line": (b"nonsense\r\n\r\n", {400}),
        "TLS on a plain port": (b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\r\n\r\n", {400}),
        "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505}),
        "no Host": (b"GET /livez HTTP/1.1\r\n\r\n", {400}),
        "two Hosts": (b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", {400}),
        "a NUL in a header": (b"GET /livez HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n", {400}),
        "a space before the colon": (b"GET /livez HTTP/1.1\r\nHost : x\r\n\r\n", {400}),
        "headers of 1 MB": (b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n", {431}),
        "100,000 headers": (b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 100_000 + b"\r\n", {431}),
        "Content-Length: -1": (post(text, "Content-Length: -1"), {400}),
        "Content-Length: 0x10": (post(text, "Content-Length: 0x10"), {400}),
        "Content-Length: 10^30": (post(text, "Content-Length: 1" + "0" * 30), {400}),
        "Content-Length: 10^12": (post(text, "Content-Length: 1" + "0" * 12), {413}),
        "two Content-Lengths": (post(text, "Content-Length: 3", "Content-Length: 4"), {400}),
        "Content-Length and Transfer-Encoding": (post(text, "Content-Length: 27", "Transfer-Encoding: chunked"), {400}),
        "Transfer-Encoding and Content-Length": (post(text, "Transfer-Encoding: chunked", "Content-Length: 27"), {400}),
        "Transfer-Encoding: gzip": (post(text, "Transfer-Encoding: gzip"), {400, 501}),
        "a chunk of size zz": (post(b"zz\r\nabc\r\n", "Transfer-Encoding: chunked"), {400}),
        "a chunk of 16 EB": (post(b"ffffffffffffffff\r\nabc\r\n", "Transfer-Encoding: chunked"), {400, 413, None}),
        "a shorter Content-Length": (post(text, "Content-Length: 10"), {400}),
        "a longer Content-Length, then the end": (post(text, "Content-Length: 100"), {400, None}),
        "JSON nested 100,000 deep": (post(b'{"model": "", "input": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), {400, 422}),
        "objects nested 100,000 deep": (post(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), {400, 422}),
        "a number of 1 MB": (post(b'{"model": "", "input": ' + b"1" * (1 << 20) + b"}"), {400, 422}),
        "bad UTF-8": (post(b'{"model": "", "input": "\xff\xfe\xc3("}'), {400, 422}),
        "an unfinished string": (post(b'{"model": "", "input": "abc'), {400, 422}),
        "nothing": (post(b""), {400, 422}),
    }


def judge_nonsense(report, server):
    outcomes = {name: ask(server.port, data) for name, (data, _) in nonsense().items()}
    wrong = {name: outcomes[name] for name, (_, right) in nonsense().items() if outcomes[name] not in right}
    report.raw["nonsense"] = outcomes
    report.add(holds(f"{len(outcomes)} kinds of nonsense, answered wrongly", not wrong, str(wrong or 0), "0"))


def drip(clients, pieces, limit_s):
    """Sends each client one byte a second in turn until the server has closed all; statuses and when each was closed."""
    begin, outcomes = time.monotonic(), {}
    while len(outcomes) < len(clients) and time.monotonic() - begin < limit_s:
        for number, client in enumerate(clients):
            if number in outcomes:
                continue
            try:
                client.send(pieces[int(time.monotonic() - begin) % len(pieces)])
                client.setblocking(False)
                answer = client.recv(4096)
                outcomes[number] = (status_of(answer), time.monotonic() - begin)
            except BlockingIOError:
                pass
            except OSError:
                outcomes[number] = (None, time.monotonic() - begin)
        time.sleep(1)
    return outcomes


def judge_slow(report, server, name, opening):
    clients = [connect(server.port) for _ in range(SLOW)]
    for client in clients:
        client.sendall(opening)
    outcomes = drip(clients, [b"x"], REQUEST_LIMIT_S + 2 * SLACK_S)
    for client in clients:
        client.close()
    statuses = {status for status, _ in outcomes.values()}
    latest = max((seconds for _, seconds in outcomes.values()), default=float("inf"))
    report.raw[name] = sorted(outcomes.values(), key=lambda outcome: outcome[1])
    report.add(holds(f"{SLOW} clients with {name}", len(outcomes) == SLOW and statuses <= {408, None} and latest <= REQUEST_LIMIT_S + SLACK_S,
                     f"{len(outcomes)} ended, statuses {statuses}, the last after {latest:.1f} s",
                     f"408 or cut within {REQUEST_LIMIT_S + SLACK_S} s"))


def judge_pipeline(report, server):
    with connect(server.port) as client:
        writer = threading.Thread(target=lambda: (client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * PIPELINED),
                                                  client.shutdown(socket.SHUT_WR)))
        writer.start()
        answers = read_all(client)
        writer.join()
    found = len(re.findall(rb"HTTP/1\.1 200 ", answers))
    report.add(holds(f"{PIPELINED} requests in one go", found == PIPELINED, f"{found} answers of 200", str(PIPELINED)))


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def judge_idle(report, server):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before, clients = rss_kib(server.process.pid), []
    try:
        for _ in range(IDLE):
            client = connect(server.port)
            client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            clients.append(client)
        alive = sum(status_of(client.recv(4096)) == 200 for client in clients)
        after = rss_kib(server.process.pid)
    finally:
        for client in clients:
            client.close()
    report.raw["idle"] = {"connections": len(clients), "alive": alive, "rss_kib": [before, after]}
    report.add(at_least("idle connections that were answered before", alive, IDLE, 0))
    report.add(at_most("memory for each", (after - before) / IDLE, IDLE_KIB, 2, " KiB"))


def judge_slow_reader(report, server):
    body = json.dumps({"model": "", "input": [f"w {i}" for i in range(LARGE_TEXTS)]}).encode()
    with connect(server.port, receive_buffer=4096) as client:
        client.sendall(post(body) * LARGE_ANSWERS)
        status = status_of(client.recv(16, socket.MSG_WAITALL))  # the first answer has begun, and no more is read
        begin, is_cut = time.monotonic(), False
        while not is_cut and time.monotonic() - begin < WRITE_STALL_S + 2 * SLACK_S:
            time.sleep(0.2)
            # TCP_INFO begins with the state; 7 is TCP_CLOSE. Source: Linux, include/net/tcp_states.h.
            is_cut = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 7
        took_s = time.monotonic() - begin
    report.add(holds("a reader's large request", status == 200, str(status), "200"))
    report.add(holds("a reader that takes nothing of large answers", is_cut and took_s <= WRITE_STALL_S + SLACK_S,
                     f"cut off after {took_s:.1f} s" if is_cut else "not cut off", f"cut off within {WRITE_STALL_S + SLACK_S} s"))


def judge_tls(report):
    certificate, key = scratch("hostile.pem"), scratch("hostile.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    os.chmod(key, 0o600)
    with serving(MODEL, "--devices", "2xcpu", "--tls-cert", certificate, "--tls-key", key, name="hostile-tls",
                 certificate=certificate) as server, GoodClient(server) as good:
        outcomes = {
            "plain HTTP": ask(server.port, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"),
            "nonsense": ask(server.port, os.urandom(512)),
            "a broken record": ask(server.port, b"\x16\x03\x01\xff\xff" + b"\0" * 200),
            "an empty connection": ask(server.port, b""),
        }
        with connect(server.port) as silent:
            begin = time.monotonic()
            read_all(silent)
            silent_s = time.monotonic() - begin
    report.raw["tls"] = {"statuses": outcomes, "silent_s": silent_s}
    report.add(holds("TLS port: plain HTTP", outcomes["plain HTTP"] == 400, str(outcomes["plain HTTP"]), "400"))
    cut = {name: status for name, status in outcomes.items() if name != "plain HTTP"}
    report.add(holds("TLS port: what is neither", set(cut.values()) == {None}, str(cut), "cut"))
    report.add(at_most("TLS port: a client that says nothing", silent_s, REQUEST_LIMIT_S + SLACK_S, 2, " s"))
    judge_good(report, good, "TLS: ")


def judge_good(report, good, prefix=""):
    report.raw[f"{prefix}good"] = {"seconds": good.seconds, "failures": good.failures}
    report.add(holds(f"{prefix}requests of the good client", good.seconds and not good.failures,
                     f"{len(good.seconds)} answered, {len(good.failures)} failed {good.failures[:1] or ''}", "all answered"))
    if good.seconds:
        report.add(at_most(f"{prefix}99th percentile of its answers", sorted(good.seconds)[int(len(good.seconds) * 0.99)], GOOD_S, 3, " s"))


def fuzz(report, arguments):
    tree = ROOT / "build-test" / "sanitized"
    if not (tree / "build.ninja").exists():
        report.add(holds("the fuzz programs are built", False, "run ./test first"))
        return
    subprocess.run(["ninja", "-C", tree, "http_request_fuzz"], check=True, stdout=subprocess.DEVNULL)
    seconds = FUZZ_LONG_S if arguments.long else FUZZ_S
    done = subprocess.run(["ctest", "--test-dir", tree, "-R", "^fuzz[.]http_request_fuzz$", "--verbose"], capture_output=True, text=True,
                          env=dict(os.environ, FUZZ_SECONDS=str(seconds), FUZZ_SEED=str(arguments.seed)))
    inputs = sum(map(int, re.findall(r"stat::number_of_executed_units: (\d+)", done.stdout)))
    report.raw["fuzz"] = {"output": done.stdout[-20000:], "seconds": seconds, "seed": arguments.seed}
    report.add(holds("http_request_fuzz under ASan and UBSan", done.returncode == 0 and inputs > 0, f"{inputs:,} inputs in {seconds} s",
                     "no finding"))


def measure(report, arguments):
    with serving(MODEL, "--devices", "2xcpu", name="hostile") as server:
        with GoodClient(server) as good:
            judge_idle(report, server)  # first: what the others leave on the heap would hide what these take
            judge_nonsense(report, server)
            judge_pipeline(report, server)
            judge_slow(report, server, "slow headers", b"GET /livez HTTP/1.1\r\nHost: ")
            judge_slow(report, server, "slow bodies", post(b"{", "Content-Length: 1000"))
            judge_slow_reader(report, server)
        judge_good(report, good)
        report.add(holds("the server afterwards", server.stop() == 0, f"exit code {server.process.returncode}", "exit code 0"))
    judge_tls(report)
    fuzz(report, arguments)
