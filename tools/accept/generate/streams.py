"""Replies of `muster serve chat=FILE.gguf` as a client sees them: streamed, with the time of each piece."""

import http.client
import json
import threading
import time

from generate.replies import DECODER
from serve.running import serving

MODEL = "chat"


def decoder_server(*words, name="generate", **options):
    """In the file's own bits where the words name no precision: what auto measures may differ from run to run."""
    words = words if "--precision" in words else (*words, "--precision", "own")
    return serving(f"{MODEL}={DECODER}", *words, name=name, **options)


class Reply:
    """One streamed completion: its text, how it ended and when each piece came (monotonic seconds)."""

    def __init__(self):
        self.status, self.text, self.finish, self.error, self.usage = None, "", None, None, None
        self.asked_at, self.times = None, []
        self.ended_at, self.timings = None, None  # what a peer says of its own times

    def gap(self):
        """The longest wait between two pieces."""
        return max((b - a for a, b in zip(self.times, self.times[1:])), default=0.0)

    def first_s(self):
        return self.times[0] - self.asked_at if self.times else None

    def is_whole(self):
        return self.status == 200 and self.error is None and self.finish is not None


def read_events(answer, reply, pieces_most):
    for line in answer:
        if not line.startswith(b"data: "):
            continue
        data = line[6:].strip()
        if data == b"[DONE]":
            return
        event = json.loads(data)
        if "error" in event:
            reply.error = event["error"]
            return
        for choice in event["choices"]:
            if choice.get("text"):
                reply.text += choice["text"]
                reply.times.append(time.monotonic())
            reply.finish = choice.get("finish_reason") or reply.finish
        reply.usage = event.get("usage") or reply.usage
        reply.timings = event.get("timings") or reply.timings
        if pieces_most is not None and len(reply.times) >= pieces_most:
            return


def ask(server, prompt, pieces_most=None, timeout_s=300, **fields):
    """Streams one completion; after `pieces_most` pieces the client goes."""
    reply = Reply()
    body = json.dumps({"model": MODEL, "prompt": prompt, "stream": True, "stream_options": {"include_usage": True},
                       "temperature": 0, **fields})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout_s)
    reply.asked_at = time.monotonic()
    try:
        connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        reply.status = answer.status
        if answer.status != 200:
            reply.error = json.loads(answer.read())["error"]
            reply.retry_after = answer.headers.get("Retry-After")
        else:
            read_events(answer, reply, pieces_most)
    except (OSError, http.client.HTTPException, ValueError) as error:
        reply.error = {"message": repr(error)}
    finally:
        reply.ended_at = time.monotonic()
        connection.close()
    return reply


def ask_all(server, prompts, **fields):
    """All of them at once; the replies in the order of the prompts. `run` is called while they stream."""
    replies = [None] * len(prompts)

    def one(index):
        replies[index] = ask(server, prompts[index], **fields)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(prompts))]
    for thread in threads:
        thread.start()
    return threads, replies


def metric(server, name):
    """The sum of a metric over its labels."""
    values = [line.rsplit(" ", 1)[1] for line in server.get("/metrics")[1].decode().splitlines()
              if line.startswith((name + " ", name + "{"))]
    return sum(map(float, values))
