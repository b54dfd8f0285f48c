"""Clients that know each right answer, and an eye on the devices of a server, in processes of their own."""

import contextlib
import http.client
import json
import multiprocessing
import threading
import time

from programs import TESTS
from texts import corpus_lines

FAULTY_WORKER = TESTS / "plain" / "bin" / "muster-worker-faulty"
LOOK_S = 0.002  # between two looks at the devices
SEEN_S = 0.05   # what looking may add to a time


def texts(count, without=None):
    """`count` different texts of the corpus."""
    found = dict.fromkeys(line for line in corpus_lines() if line.strip() and (without is None or without not in line.lower()))
    return list(found)[:count]


def body(text):
    return json.dumps({"model": "", "input": text, "encoding_format": "base64"})


def right_answers(server, lines):
    """Text -> its vector, asked for while all is well."""
    known = {}
    for at in range(0, len(lines), 32):
        part = lines[at:at + 32]
        known.update(zip(part, server.embed(part, encoding_format="base64")))
    return known


class Outcome:
    """What one set of clients got."""

    def __init__(self):
        self.right = self.wrong = 0
        self.failed = []  # the first few, in words
        self.failed_count = 0

    def fail(self, words):
        self.failed_count += 1
        if len(self.failed) < 20:
            self.failed.append(words)


def ask(port, known, keys, number, step, is_over, outcome, lock):
    # One connection for good: an answer that came twice would be taken for the next one, and be wrong.
    connection, at = http.client.HTTPConnection("127.0.0.1", port, timeout=90), number
    while not is_over.is_set():
        text = keys[at % len(keys)]
        at += step
        try:
            connection.request("POST", "/v1/embeddings", body(text), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            with lock:
                outcome.fail(repr(error))
            connection.close()
            continue
        with lock:
            if answer.status != 200:
                outcome.fail(f"{answer.status}: {content[:200]!r}")
            elif known is None or json.loads(content)["data"][0]["embedding"] == known[text]:
                outcome.right += 1
            else:
                outcome.wrong += 1


def clients(port, known, keys, count, is_over, results):
    outcome, lock = Outcome(), threading.Lock()
    threads = [threading.Thread(target=ask, args=(port, known, keys, i, count, is_over, outcome, lock)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(vars(outcome))


@contextlib.contextmanager
def asking(server, lines, known, count):
    """`count` requests of one text each in flight; yields a dictionary that is filled at the end of the block."""
    context = multiprocessing.get_context("fork")
    is_over, results, outcome = context.Event(), context.Queue(), {}
    process = context.Process(target=clients, args=(server.port, known, lines, count, is_over, results), daemon=True)
    process.start()
    try:
        yield outcome
    finally:
        is_over.set()
        with contextlib.suppress(Exception):
            outcome.update(results.get(timeout=100))
        process.join(10)


class Watch:
    """One connection that looks at /v1/devices again and again."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)

    def devices(self):
        self.connection.request("GET", "/v1/devices")
        return {device["name"]: device for device in json.loads(self.connection.getresponse().read())["devices"]}

    def until(self, is_so, limit_s):
        """The time at which `is_so(devices)` was seen, and the devices; None and the last look when the time ran out."""
        end = time.monotonic() + limit_s
        while True:
            devices = self.devices()
            now = time.monotonic()
            if is_so(devices):
                return now, devices
            if now > end:
                return None, devices
            time.sleep(LOOK_S)

    def until_serving(self, limit_s=60):
        """Until every device is ready and has done something."""
        seen, devices = self.until(lambda all_: all(d["state"] == "ready" and d["text_count"] > 0 for d in all_.values()), limit_s)
        if seen is None:
            raise TimeoutError(f"not all devices serve: {devices}")
        return devices
