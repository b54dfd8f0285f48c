"""A stand-in for the Docker daemon on a Unix socket, as much of it as `docker run --detach`, `ps`, `inspect`, `logs`,
`stop` and `rm` need. It starts nothing and keeps what it was asked to create.

    fake_daemon.py SOCKET LOG      prints "ready" when it listens; appends a line of JSON per creation to LOG

The image decides how a container fares: `fake/exits:3` ends at once with exit code 3, `fake/refused` does not start, any
other runs. Source of the messages: Docker Engine API 1.47 (docs.docker.com/reference/api/engine)."""

import hashlib
import http.server
import json
import re
import socketserver
import sys
import threading
import urllib.parse

API_VERSION = "1.47"
LOG_TEXT = b"a line of the log\n"


class Daemon:
    """The containers, and the log of creations."""

    def __init__(self, log):
        self.log = log
        self.lock = threading.Lock()
        self.containers = {}

    def create(self, name, body):
        identity = hashlib.sha256(name.encode()).hexdigest()
        with self.lock:
            if any(c["name"] == name for c in self.containers.values()):
                return 409, {"message": f'Conflict. The container name "/{name}" is already in use'}
            self.containers[identity] = {"id": identity, "name": name, "body": body, "state": "created", "code": 0}
            with open(self.log, "a") as lines:
                lines.write(json.dumps({"name": name, "body": body}) + "\n")
        return 201, {"Id": identity, "Warnings": []}

    def start(self, container):
        image = container["body"]["Image"]
        if image.startswith("fake/refused"):
            return 500, {"message": "could not select device driver"}
        exits = re.fullmatch(r"fake/exits:(\d+)", image)
        container["state"], container["code"] = ("exited", int(exits[1])) if exits else ("running", 0)
        return 204, None

    def find(self, name):
        for container in self.containers.values():
            if container["name"] == name or container["id"].startswith(name):
                return container
        return None

    def inspect(self, container):
        return {"Id": container["id"], "Name": "/" + container["name"], "Created": "2026-01-01T00:00:00Z",
                "Config": {**container["body"], "Tty": False}, "HostConfig": container["body"]["HostConfig"],
                "State": {"Status": container["state"], "Running": container["state"] == "running",
                          "ExitCode": container["code"]}}

    def summary(self, container):
        ports = []
        for inside, bindings in (container["body"]["HostConfig"].get("PortBindings") or {}).items():
            ports += [{"IP": b["HostIp"], "PublicPort": int(b["HostPort"]), "PrivatePort": int(inside.split("/")[0]),
                       "Type": "tcp"} for b in bindings]
        return {"Id": container["id"], "Names": ["/" + container["name"]], "Image": container["body"]["Image"],
                "Labels": container["body"].get("Labels") or {}, "State": container["state"], "Created": 1767225600,
                "Status": "Up 5 seconds" if container["state"] == "running" else f"Exited ({container['code']})",
                "Ports": ports, "Command": "serve"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    daemon = None  # set before the server starts

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # the client ended without waiting for the answer

    def answer(self, status, body=None, content_type="application/json"):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Api-Version", API_VERSION)
        self.send_header("Ostype", "linux")
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def parts(self):
        url = urllib.parse.urlsplit(self.path)
        path = re.sub(r"^/v\d+\.\d+", "", url.path)
        return path, dict(urllib.parse.parse_qsl(url.query))

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def on_container(self, path):
        """(container, what is asked of it), or None after an answer."""
        name, _, action = path.removeprefix("/containers/").partition("/")
        container = self.daemon.find(urllib.parse.unquote(name))
        if container is None:
            self.answer(404, {"message": f"No such container: {name}"})
            return None
        return container, action

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path, query = self.parts()
        if path == "/_ping":
            self.answer(200, b"OK", "text/plain")
        elif path == "/version":
            self.answer(200, {"Version": "28.0.0", "ApiVersion": API_VERSION, "MinAPIVersion": "1.24", "Os": "linux"})
        elif path == "/containers/json":
            wanted = json.loads(query.get("filters", "{}")).get("label", {})
            listed = [self.daemon.summary(c) for c in self.daemon.containers.values()
                      if all(label.split("=")[0] in c["body"]["Labels"] for label in wanted)]
            self.answer(200, listed)
        elif found := self.on_container(path):
            container, action = found
            if action == "json":
                self.answer(200, self.daemon.inspect(container))
            elif action == "logs":
                frame = b"\x01\x00\x00\x00" + len(LOG_TEXT).to_bytes(4, "big") + LOG_TEXT
                self.answer(200, frame, "application/vnd.docker.multiplexed-stream")
            else:
                self.answer(404, {"message": "page not found"})

    def do_POST(self):
        path, query = self.parts()
        body = self.read_body()
        if path == "/containers/create":
            self.answer(*self.daemon.create(query.get("name", "nameless"), json.loads(body)))
        elif found := self.on_container(path):
            container, action = found
            if action == "start":
                self.answer(*self.daemon.start(container))
            elif action == "stop":
                container["state"] = "exited"
                self.answer(204)
            elif action == "wait":
                self.answer(200, {"StatusCode": container["code"]})
            else:
                self.answer(404, {"message": "page not found"})

    def do_DELETE(self):
        found = self.on_container(self.parts()[0])
        if found:
            del self.daemon.containers[found[0]["id"]]
            self.answer(204)

    def address_string(self):
        return "client"

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def main():
    socket_path, log = sys.argv[1:3]
    Handler.daemon = Daemon(log)
    with Server(socket_path, Handler) as server:
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
