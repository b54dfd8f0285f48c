"""`muster serve` while a row looks at it."""

import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from programs import MUSTER, scratch

LISTENING = re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\]):(\d+)")


class Server:
    """A running server: its process, address and what it has said on standard error."""

    def __init__(self, process, port, log, certificate=None):
        self.process = process
        self.port = port
        self.log = log
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
        self.trust = ssl.create_default_context(cafile=certificate) if certificate else None

    def get(self, path, timeout_s=10):
        """Status and body of a GET, whatever the status."""
        return self.call("GET", path, timeout_s=timeout_s)

    def call(self, method, path, body=None, headers=None, timeout_s=30):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json", **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=timeout_s, context=self.trust) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def embed(self, texts, timeout_s=30, **fields):
        status, body = self.call("POST", "/v1/embeddings", {"input": texts, "model": "", **fields}, timeout_s=timeout_s)
        if status != 200:
            raise RuntimeError(f"{status}: {body[:300]!r}")
        return [item["embedding"] for item in json.loads(body)["data"]]

    def workers(self):
        """Device name -> pid of its worker, as the server says."""
        devices = json.loads(self.get("/v1/devices")[1])["devices"]
        return {device["name"]: device["pid"] for device in devices if device.get("pid")}

    def stop(self, limit_s=40):
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


@contextlib.contextmanager
def serving(*words, environment=None, ready_s=120, name="serve", certificate=None, muster=MUSTER):
    """`muster serve WORDS --listen 127.0.0.1:0`, ready; ended at the end of the block. With `certificate` it is asked by https."""
    log = scratch(f"{name}.log")
    with open(log, "wb") as errors:
        process = subprocess.Popen([str(muster), "serve", *map(str, words), "--listen", "127.0.0.1:0"],
                                   stdout=errors, stderr=errors, env={**os.environ, **(environment or {})})
    server = None
    try:
        end = time.monotonic() + ready_s
        while time.monotonic() < end:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}: {log.read_text()[-2000:]}")
            found = LISTENING.search(log.read_text(errors="replace"))
            if found:
                server = Server(process, int(found.group(1)), log, certificate)
                try:
                    if server.get("/readyz")[0] == 200:
                        break
                except OSError:
                    pass
            time.sleep(0.02)
        else:
            raise TimeoutError(f"not ready within {ready_s} s: {log.read_text()[-2000:]}")
        yield server
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
