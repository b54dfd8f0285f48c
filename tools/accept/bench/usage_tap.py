"""Stands between `muster bench` and a server, passes on what they say, and adds up what the server's answers say of their tokens."""

import http.client
import http.server
import json
import threading

NOT_PASSED_ON = ("connection", "content-length", "date", "server", "transfer-encoding")  # of answers: it says its own
PART = 1 << 16


def usage_of(body):
    """What an answer, or the last event of a stream that does, says of its tokens."""
    events = [line[len(b"data: "):] for line in body.split(b"\n") if line.startswith(b"data: {")] or [body]
    found = [one["usage"] for one in map(json.loads, events) if one.get("usage")]
    return found[-1] if found else {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.pass_on("GET", None)

    def do_POST(self):
        self.pass_on("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def pass_on(self, method, body):
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        server = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=300)
        try:
            server.request(method, self.path, body, headers)
            answer = server.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in NOT_PASSED_ON:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            whole = bytearray()
            while part := answer.read1(PART):
                whole += part
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
            if method == "POST" and answer.status == 200:
                self.server.add(usage_of(bytes(whole)))  # before the end, behind which the client may be gone
            self.wfile.write(b"0\r\n\r\n")
        finally:
            server.close()


class UsageTap(http.server.ThreadingHTTPServer):
    """In front of the server at `port`. Use it with `with`."""

    daemon_threads = True

    def __init__(self, port):
        super().__init__(("127.0.0.1", 0), Handler)
        self.port = port
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.answers = self.input_tokens = self.output_tokens = 0
        self.lock = threading.Lock()

    def add(self, usage):
        with self.lock:
            self.answers += 1
            self.input_tokens += usage.get("prompt_tokens", usage.get("total_tokens", 0))
            self.output_tokens += usage.get("completion_tokens") or 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
