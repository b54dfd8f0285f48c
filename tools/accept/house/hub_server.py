"""A hub on this machine with one model, for `muster pull`: large files come from a second host by a redirect, connections
are cut where the row wants it, and every byte that is sent is counted."""

import hashlib
import http.server
import json
import pathlib
import re
import threading
import urllib.parse

COMMIT = "c0ffee" * 6 + "c0ff"
PIECE = 64 << 10
LARGE = 1 << 20  # the hub keeps what is larger by Git LFS


def hash_of(path):
    """What the hub names a file by: SHA-256 of a large one, git's SHA-1 of a small one."""
    content = path.read_bytes()
    if len(content) >= LARGE:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Cuts:
    """When the next connection is cut, by bytes of bodies sent in all; None: never."""

    def __init__(self):
        self.lock, self.sent, self.cut_at, self.requests, self.cut_count = threading.Lock(), 0, None, [], 0

    def room(self, size):
        """How many of `size` bytes may be sent before the cut."""
        with self.lock:
            if self.cut_at is None or self.sent + size <= self.cut_at:
                self.sent += size
                return size
            rest = max(0, self.cut_at - self.sent)
            self.sent, self.cut_at = self.sent + rest, None
            self.cut_count += 1
            return rest


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        hub = self.server.hub
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        hub.cuts.requests.append((path, self.headers.get("Range"), self.headers.get("Authorization")))
        if path == f"/api/models/{hub.model}/revision/main":
            return self.answer(200, json.dumps(hub.listing()).encode())
        for start in (f"/{hub.model}/resolve/{COMMIT}/", "/store/"):
            if path.startswith(start) and path[len(start):] in hub.files:
                return self.send_file(hub, path[len(start):], is_store=start == "/store/")
        return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, hub, name, is_store):
        content = hub.files[name]
        if len(content) >= LARGE and not is_store:
            return self.answer(302, b"", {"Location": f"http://localhost:{hub.store_port}/store/{name}"})
        begin = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        begin = int(begin.group(1)) if begin else 0
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        for at in range(begin, len(content), PIECE):
            piece = content[at:at + PIECE]
            room = hub.cuts.room(len(piece))
            try:
                self.wfile.write(piece[:room])
                self.wfile.flush()
            except OSError:  # a client that was killed
                room = 0
            if room < len(piece):
                self.close_connection = True
                return None
            hub.after_piece.set()
        return None


class Hub:
    """Serves the files of a folder as one model, until it is closed."""

    def __init__(self, folder, model):
        self.model, self.cuts, self.after_piece = model, Cuts(), threading.Event()
        paths = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()]
        self.hashes = {str(path.relative_to(folder)): hash_of(path) for path in paths}
        self.files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        self.servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
        for server in self.servers:
            server.hub, server.daemon_threads = self, True
            threading.Thread(target=server.serve_forever, daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.store_port = self.servers[1].server_port

    def listing(self):
        siblings = []
        for name, content in self.files.items():
            entry = {"rfilename": name, "size": len(content), "blobId": self.hashes[name][:40]}
            if len(content) >= LARGE:
                entry["lfs"] = {"size": len(content), "sha256": self.hashes[name], "pointerSize": 134}
            siblings.append(entry)
        return {"id": self.model, "sha": COMMIT, "siblings": siblings}

    def first_store_range(self, after):
        """From where the first large file was asked for, of the requests after that number; None: of none."""
        for path, wanted, _ in self.cuts.requests[after:]:
            if path.startswith("/store/"):
                return int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        return None

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()
