"""A server that holds every second request up for 20 ms longer at one place: before it reads, before it answers, within its answer."""

import socket
import threading
import time

SHORT_S, LONG_S = 0.005, 0.025
PLACES = ("reading", "head", "body")
HEAD, BODY = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n", b"ok\n"
RECEIVE_BYTES = 1 << 18  # of each socket, so that a large request does not fit into what the kernel takes for it


class PlantedServer:
    """Use it with `with`. place: one of PLACES, or None. Each request waits there, so that buffers are as full in all of them.
    timing: what it says of its stages, whatever they are.
    """

    def __init__(self, place=None, timing=None):
        self.place = place
        self.head = (HEAD + (f"Server-Timing: {timing}\r\n" if timing else "") + "\r\n").encode()
        self.delays = []  # seconds for which each request was really held up
        self.first = self.last = None  # when the first request came and the last answer went: time.monotonic()
        self.buffer = bytearray(1 << 20)
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.thread = threading.Thread(target=self.accept, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)  # accept() returns
        self.thread.join(timeout=30)
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            try:
                while connection.recv(1, socket.MSG_PEEK):
                    self.answer(connection)
            except OSError:
                pass  # the client went

    def answer(self, connection):
        self.first = self.first or time.monotonic()
        is_long = len(self.delays) % 2 == 1
        self.delays.append(0.0)
        self.hold("reading", is_long)
        self.read_request(connection)
        self.hold("head", is_long)
        connection.sendall(self.head)
        self.hold("body", is_long)
        connection.sendall(BODY)
        self.last = time.monotonic()

    def hold(self, place, is_long):
        if place != self.place:
            return
        begin = time.monotonic()
        time.sleep(LONG_S if is_long else SHORT_S)
        self.delays[-1] = time.monotonic() - begin

    def read_request(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            part = connection.recv(4096)
            if not part:
                raise ConnectionError("the request is cut off")
            head += part
        head, _, body = head.partition(b"\r\n\r\n")
        sizes = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        left = int(sizes[0]) - len(body) if sizes else 0
        while left > 0:
            size = connection.recv_into(self.buffer, min(left, len(self.buffer)))
            if size == 0:
                raise ConnectionError("the request is cut off")
            left -= size
