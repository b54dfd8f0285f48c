"""A server of `/v1/completions` around a library that only computes tokens: one thread, requests come in between two steps.

An engine has `is_busy()`, `add(key, ids, count)` and `step()`, which gives [(key, ids, is_finished)]. Replies are greedy, have exactly
`max_tokens` tokens, and their text is the ids in figures: the work of detokenising is left out, in the library's favour. The last event
has the times as the library's side sees them, named as llama-server names them.
"""

import json
import selectors
import socket
import time

END_OF_HEAD = b"\r\n\r\n"


class Client:
    """One connection and the request that it is answered."""

    def __init__(self, connection):
        self.connection, self.unread = connection, b""
        self.is_streamed, self.prompt_count, self.count = False, 0, 0
        self.asked_at = self.first_at = 0.0

    def next_request(self):
        """Line, body of the next whole request; None while it is not whole."""
        head, end, rest = self.unread.partition(END_OF_HEAD)
        if not end:
            return None
        lines = head.decode("latin-1").split("\r\n")
        length = next((int(line.split(":")[1]) for line in lines[1:] if line.lower().startswith("content-length:")), 0)
        if len(rest) < length:
            return None
        self.unread = rest[length:]
        return lines[0], rest[:length]

    def send(self, data):
        self.connection.sendall(data)

    def send_whole(self, answer, status="200 OK"):
        body = json.dumps(answer).encode()
        self.send(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def send_events(self, *events):
        data = b"".join(b"data: " + (event if isinstance(event, bytes) else json.dumps(event).encode()) + b"\n\n" for event in events)
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def begin(self, body, prompt_count):
        self.is_streamed, self.prompt_count, self.count = bool(body.get("stream")), prompt_count, 0
        self.asked_at = time.monotonic()
        if self.is_streamed:
            self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

    def take(self, ids, is_finished):
        now = time.monotonic()
        if self.count == 0 and ids:
            self.first_at = now
        self.count += len(ids)
        choice = {"index": 0, "text": "".join(f" {id}" for id in ids), "finish_reason": "length" if is_finished else None}
        usage = {"prompt_tokens": self.prompt_count, "completion_tokens": self.count}
        timings = {"prompt_n": self.prompt_count, "prompt_ms": (self.first_at - self.asked_at) * 1e3,
                   "predicted_n": self.count, "predicted_ms": (now - self.first_at) * 1e3}
        if not self.is_streamed:
            if is_finished:
                self.send_whole({"choices": [choice], "usage": usage, "timings": timings})
            return
        self.send_events({"choices": [choice]})
        if is_finished:
            self.send_events({"choices": [], "usage": usage, "timings": timings}, b"[DONE]")
            self.send(b"0\r\n\r\n")


class Loop:
    def __init__(self, engine, encode, port):
        self.engine, self.encode = engine, encode
        self.clients, self.next_key = {}, 0  # by the key of the request that is being answered
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.selector.register(self.listener, selectors.EVENT_READ, None)

    def accept(self):
        connection, _ = self.listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(connection, selectors.EVENT_READ, Client(connection))

    def close(self, client):
        """Whoever has gone: what is still computed for him goes nowhere."""
        self.selector.unregister(client.connection)
        client.connection.close()
        self.clients = {key: other for key, other in self.clients.items() if other is not client}

    def read(self, client):
        data = client.connection.recv(1 << 20)
        if not data:
            self.close(client)
            return
        client.unread += data
        while request := client.next_request():
            self.answer(client, *request)

    def answer(self, client, line, text):
        if line.startswith("GET "):
            client.send_whole({"object": "list", "data": []})
            return
        body = json.loads(text)
        prompt = body["prompt"]
        ids = self.encode(prompt) if isinstance(prompt, str) else prompt
        client.begin(body, len(ids))
        self.next_key += 1
        self.clients[self.next_key] = client
        self.engine.add(self.next_key, ids, body["max_tokens"])

    def step(self):
        for key, ids, is_finished in self.engine.step():
            client = self.clients.get(key)
            if client is None:
                continue
            if is_finished:
                del self.clients[key]
            try:
                client.take(ids, is_finished)
            except OSError:
                self.close(client)

    def run(self):
        while True:
            for event, _ in self.selector.select(0 if self.engine.is_busy() else None):
                try:
                    self.accept() if event.data is None else self.read(event.data)
                except OSError:
                    if event.data is not None:
                        self.close(event.data)
            if self.engine.is_busy():
                self.step()


def encoder(path):
    """Text -> ids by a tokenizer.json, which is read when the first text comes."""
    known = []

    def encode(text):
        if not known:
            from tokenizers import Tokenizer
            known.append(Tokenizer.from_file(path))
        return known[0].encode(text, add_special_tokens=False).ids

    return encode


def serve(engine, tokenizer, port):
    Loop(engine, encoder(tokenizer), int(port)).run()
