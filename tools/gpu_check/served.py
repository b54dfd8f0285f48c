"""A server of muster's for as long as a `with` lasts, and its workers. Needs nothing but Python."""

import contextlib
import http.client
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time


class Server:
    def __init__(self, process):
        self.process, self.port, self.exit_code = process, None, None

    def wait_until_ready(self):
        """Returns when the model can be asked; the server begins to listen before."""
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
            time.sleep(0.05)

    def kill_workers(self):
        """kill -9 to each worker of this server, and to no other one of the machine."""
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
                if lines["Name"].strip() == "muster-worker" and int(lines["PPid"]) == self.process.pid:
                    os.kill(int(status.parent.name), signal.SIGKILL)
            except (KeyError, OSError):
                pass  # it ended meanwhile


@contextlib.contextmanager
def served(muster, *words):
    """`exit_code` is that of the end by SIGTERM, behind the `with`."""
    process = subprocess.Popen([muster, "serve", *words, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    server = Server(process)
    try:
        listening = next((line for line in process.stderr if "listening on " in line), None)
        if listening is None:
            raise RuntimeError("the server ended before it listened")
        server.port = int(listening.rsplit(":", 1)[1])
        threading.Thread(target=sys.stderr.writelines, args=(process.stderr,), daemon=True).start()
        server.wait_until_ready()
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        server.exit_code = process.wait(timeout=40)
