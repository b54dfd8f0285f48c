"""Requests that are wrong, huge or both, and a good client beside them."""

import json
import threading
import time

from programs import MODEL
from report import at_most, holds
from serve.running import serving

TITLE = "broken JSON, number, null, empty list, empty string, unknown model, lone surrogate, 10 MB, 100,000 texts"
IS_TIMED = True

LIMIT_S = 1.0
REPEATS = 5


def body(value):
    return json.dumps({"model": "", "input": value}).encode()


BAD = {
    "broken JSON": (b'{"input": "a", "model": ', 400),
    "no JSON": (b"hello", 400),
    "no object": (b"[1, 2]", 400),
    "no input": (b'{"model": ""}', 400),
    "a number": (body(7), 400),
    "null": (body(None), 400),
    "an object": (body({"text": "a"}), 400),
    "empty list": (body([]), 400),
    "empty string": (body(""), 200),
    "list of null": (body(["a", None]), 400),
    "unknown model": (b'{"model": "no-such-model", "input": "a"}', 404),
    "lone surrogate": (b'{"model": "", "input": "\\ud800"}', 400),
    "bad UTF-8": (b'{"model": "", "input": "\xff\xfe"}', 400),
    "a text of 10 MB": (body("word " * 2_000_000), 400),
    "100,000 texts": (body(["a short text"] * 100_000), 400),
    "100,000 brackets": (b'{"model": "", "input": ' + b"[" * 100_000, 400),
    "a body of 100 MB": (body("x" * 100_000_000), 413),
}


class GoodClient:
    """Asks for one vector after another and keeps how long each took."""

    def __init__(self, server):
        self.server, self.times, self.wrong = server, [], 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()

    def ask(self):
        number = 0
        while not self.is_over.is_set():
            number += 1
            start = time.monotonic()
            status, _ = self.server.call("POST", "/v1/embeddings", {"model": "", "input": f"a good text, number {number}"})
            self.times.append(time.monotonic() - start)
            self.wrong += status != 200
            time.sleep(0.002)

    def stop(self):
        self.is_over.set()
        self.thread.join()


def ask_badly(server, data):
    """Status and seconds; a server may close before all is sent, and says 413 then."""
    start = time.monotonic()
    try:
        status, answer = server.call("POST", "/v1/embeddings", data)
    except OSError:
        status, answer = 413, b""
    return status, time.monotonic() - start, answer


def measure(report, arguments):
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", name="bad") as server:
        alone = GoodClient(server)
        time.sleep(3)
        alone.stop()
        good = GoodClient(server)
        for name, (data, expected) in BAD.items():
            outcomes = [ask_badly(server, data) for _ in range(REPEATS)]
            statuses, slowest = {status for status, _, _ in outcomes}, max(took for _, took, _ in outcomes)
            report.raw[name] = {"statuses": sorted(statuses), "slowest_s": slowest, "said": outcomes[0][2][:300].decode(errors="replace")}
            report.add(holds(f"{name}: status", statuses == {expected}, ", ".join(map(str, statuses)), str(expected)))
            report.add(at_most(f"{name}: slowest of {REPEATS}", slowest, LIMIT_S, 3, " s"))
        good.stop()
        report.raw["good"] = {"alone_s": sorted(alone.times), "beside_s": sorted(good.times)}
        report.add(holds("the good client beside them: requests that failed", good.wrong == 0, f"{good.wrong} of {len(good.times)}", "0"))
        report.add(at_most("its slowest request", max(good.times), LIMIT_S, 3, " s"))
        server.stop()
