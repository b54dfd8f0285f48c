"""SIGTERM at random moments under load, with clients that read slowly."""

import json
import os
import random
import re
import signal
import socket
import threading
import time

from programs import MODEL, scratch, stand_in
from report import at_most, holds
from serve.running import serving

TITLE = "SIGTERM at random moments under load with slow readers: every answer that was begun arrives whole"
IS_TIMED = False

ROUNDS = int(os.environ.pop("GROUND_SIGTERM_ROUNDS", "100"))  # popped: muster refuses variables it does not know
CLIENTS, SLOW_READERS, DRAIN_S = 8, 3, 10
TEXTS = 256          # of 384 numbers: an answer of some hundred kilobytes
SLOW_PIECE, SLOW_PAUSE_S, SLOW_BUFFER = 64 << 10, 0.02, 8 << 10
BEGUN = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LENGTH = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.IGNORECASE)


class Client:
    """Asks on one connection after the other until it is told to stop, and judges each answer."""

    def __init__(self, port, number, is_slow, seed):
        self.port, self.is_slow, self.random = port, is_slow, random.Random(f"{seed}/{number}")
        self.whole, self.refused, self.unbegun, self.faults = 0, 0, 0, []
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over.is_set():
            try:
                client = self.connect()
            except OSError:
                self.unbegun += 1
                time.sleep(0.01)
                continue
            with client:
                while not self.is_over.is_set() and self.ask(client):
                    pass

    def connect(self):
        client = socket.socket()
        client.settimeout(DRAIN_S * 3)
        if self.is_slow:  # else the kernel takes a whole answer for it
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SLOW_BUFFER)
        client.connect(("127.0.0.1", self.port))
        return client

    def ask(self, client):
        """One request; False when the connection is of no more use."""
        texts = [f"{self.random.random()} text" for _ in range(TEXTS)]
        body = json.dumps({"input": texts, "model": ""}).encode()
        data = b""
        try:
            client.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
        except OSError:
            pass  # it may have been told 503 already
        try:
            while not self.is_whole(data):
                if self.is_slow:
                    time.sleep(SLOW_PAUSE_S)
                piece = client.recv(SLOW_PIECE)
                if not piece:
                    break
                data += piece
        except OSError as error:
            if data:
                self.faults.append(f"{error} after {len(data)} bytes of an answer")
            else:
                self.unbegun += 1
            return False
        if not data:
            self.unbegun += 1
            return False
        if not self.is_whole(data):
            self.faults.append(f"an answer ended after {len(data)} bytes: {data[:60]!r}")
            return False
        status = int(BEGUN.match(data)[1])
        self.whole += status == 200
        self.refused += status == 503
        if status not in (200, 429, 503):
            self.faults.append(f"status {status}: {data[-200:]!r}")
        return b"\r\nConnection: close\r\n" not in data.split(b"\r\n\r\n", 1)[0] + b"\r\n"

    @staticmethod
    def is_whole(data):
        head, mark, body = data.partition(b"\r\n\r\n")
        if not mark:
            return False
        length = LENGTH.search(head + b"\r\n")
        return length is not None and len(body) >= int(length[1])

    def stop(self):
        self.is_over.set()
        self.thread.join()


def one_round(number, seed):
    """What the clients saw, the exit code and the seconds that the end took."""
    moment = random.Random(f"{seed}/moment/{number}").uniform(0.05, 1.0)
    with serving(MODEL, "--devices", "2xcpu", "--worker-program", stand_in("zero_worker"), "--no-cache-enabled",
                 "--cache-dir", scratch("sigterm-cache"), "--drain-timeout", f"{DRAIN_S}s", name="sigterm",
                 environment={"ZERO_WORKER": "echo dim=384"}) as server:
        clients = [Client(server.port, f"{number}/{i}", i < SLOW_READERS, seed) for i in range(CLIENTS)]
        time.sleep(moment)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(DRAIN_S + 30)
        took_s = time.monotonic() - begin
        for client in clients:
            client.stop()
    return {"moment_s": moment, "exit": code, "seconds": took_s, "whole": sum(c.whole for c in clients),
            "refused": sum(c.refused for c in clients), "unbegun": sum(c.unbegun for c in clients),
            "faults": [fault for c in clients for fault in c.faults]}


def hold_open(report):
    """A reader that takes nothing holds the end up for no longer than the time to end; a second signal for none."""
    for signals, limit_s in ((1, DRAIN_S), (2, 3)):
        with serving(MODEL, "--devices", "2xcpu", "--worker-program", stand_in("zero_worker"),
                     "--cache-dir", scratch("sigterm-cache"), "--drain-timeout", f"{DRAIN_S}s", name="sigterm-held",
                     environment={"ZERO_WORKER": "echo dim=384"}) as server, socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect(("127.0.0.1", server.port))
            body = json.dumps({"input": [f"{i} text" for i in range(2048)], "model": ""}).encode()
            silent.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
            silent.settimeout(60)
            silent.recv(16)
            begin = time.monotonic()
            for _ in range(signals):
                server.process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            code = server.process.wait(DRAIN_S + 30)
            took_s = time.monotonic() - begin
        what = "a reader that takes nothing" + (", a second signal" if signals == 2 else "")
        report.add(holds(f"{what}: exit code", code == 0, str(code), "0"))
        report.add(at_most(f"{what}: gone after", took_s, limit_s, 2, " s"))


def measure(report, arguments):
    rounds = [one_round(number, arguments.seed) for number in range(ROUNDS)]
    report.raw["rounds"], report.raw["seed"] = rounds, arguments.seed
    faults = [fault for one in rounds for fault in one["faults"]]
    codes = {one["exit"] for one in rounds}
    report.add(holds(f"{ROUNDS} moments, seed {arguments.seed}: answers that were begun and not whole", not faults,
                     f"{len(faults)} {faults[:1] or ''}", "0"))
    report.add(holds("answers that arrived whole", all(one["whole"] + one["refused"] > 0 for one in rounds),
                     f"{sum(one['whole'] for one in rounds)}, told 503: {sum(one['refused'] for one in rounds)}", "some in each round"))
    report.add(holds("exit codes", codes == {0}, str(codes), "{0}"))
    report.add(at_most("the longest end", max(one["seconds"] for one in rounds), DRAIN_S, 2, " s"))
    hold_open(report)
