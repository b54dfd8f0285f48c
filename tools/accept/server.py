"""A peer or a bench program that stays up and answers a line with a JSON line, for interleaved measuring."""

import json
import os
import subprocess


class LineServer:
    """Started pinned to `cores`, if given; it may take the first requests while it still loads."""

    def __init__(self, command, cores=None, env=None):
        pin = (lambda: os.sched_setaffinity(0, cores)) if cores else None
        self.command = [str(part) for part in command]
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, preexec_fn=pin,
                                        env=dict(os.environ, **(env or {})))

    def read_line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self.command[:3])} ended with {self.process.wait()}")
        return line

    def send(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.read_line())

    def ask(self, request):
        self.send(request)
        return self.receive()

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
