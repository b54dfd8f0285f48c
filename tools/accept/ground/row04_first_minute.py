"""What a server lets in before it has done anything."""

import http.client
import json
import random
import statistics
import threading
import time

from programs import MODEL
from report import at_least, at_most, holds
from serve import load
from serve.running import serving

TITLE = "a fresh server, 60 clients x 64 texts of 160 tokens at once, queue budget 2 s"
IS_TIMED = True

CLIENTS, TEXTS, TOKENS = 60, 64, 160
BUDGET_S, WAIT_S, SHARE = 2.0, 3.0, 0.8
ROUNDS = 3
# Each a token of its own in BERT's vocabulary, so that a text's tokens are its words and two special ones.
WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand part "
         "place case week company system program question work government number night point home water room mother area money "
         "story fact month lot right study book eye job word business issue side kind head house service friend father power hour "
         "game line end member law car city community name president team minute idea body information back parent face others "
         "level office door health person art war history party result change morning reason research girl guy moment air teacher "
         "force education").split()


def texts_of(random_source, count):
    return [" ".join(random_source.choices(WORDS, k=TOKENS - 2)) for _ in range(count)]


def ask(port, texts, lane=None):
    """Status, seconds, whether Retry-After came, and the tokens that were computed."""
    body = {"input": texts, "model": "", "encoding_format": "base64", **({"lane": lane} if lane else {})}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=180)
    begin = time.monotonic()
    connection.request("POST", "/v1/embeddings", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = json.loads(answer.read())
    taken = time.monotonic() - begin
    connection.close()
    tokens = content["usage"]["prompt_tokens"] if answer.status == 200 else 0
    return answer.status, taken, answer.getheader("Retry-After") is not None, tokens


def burst(port, random_source):
    """What every client was told, when all ask at once."""
    start, told = threading.Barrier(CLIENTS), [None] * CLIENTS
    texts = [texts_of(random_source, TEXTS) for _ in range(CLIENTS)]

    def client(i):
        start.wait()
        told[i] = ask(port, texts[i])

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def speed(port, random_source, seconds=8, clients=4):
    """Tokens a second while so many clients always wait for an answer."""
    done, lock, end = [], threading.Lock(), time.monotonic() + seconds

    def client():
        own = random.Random(random_source.random())
        while time.monotonic() < end:
            status, _, _, tokens = ask(port, texts_of(own, 16))
            with lock:
                done.append((time.monotonic(), tokens if status == 200 else 0))

    threads = [threading.Thread(target=client) for _ in range(clients)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(tokens for _, tokens in done) / (max(at for at, _ in done) - begin)


def whole_requests(tokens_per_second):
    """How many requests make up SHARE of the budget. Rounded down: a request is let in whole or not at all, and where two
    of them are more than the budget one is all that may be."""
    return max(1, int(SHARE * BUDGET_S * tokens_per_second / (TEXTS * TOKENS)))


def one_round(number, *options, environment=None):
    random_source = random.Random(number)
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", "--queue-budget", f"{BUDGET_S}s", *options,
                 environment=environment, name=f"first-minute-{number}") as server:
        devices = json.loads(server.get("/v1/devices")[1])["devices"]
        while any(device["state"] != "ready" for device in devices):
            time.sleep(0.05)
            devices = json.loads(server.get("/v1/devices")[1])["devices"]
        told = burst(server.port, random_source)
        tokens_per_second = speed(server.port, random_source)
        log = server.log.read_text(errors="replace")
    accepted = [answer for answer in told if answer[0] == 200]
    refused = [answer for answer in told if answer[0] == 429]
    return {"tokens_per_second": tokens_per_second, "accepted": len(accepted), "refused": len(refused),
            "with_retry_after": sum(answer[2] for answer in refused), "other": len(told) - len(accepted) - len(refused),
            "slowest_s": max((answer[1] for answer in accepted), default=0),
            "refusal_slowest_ms": 1000 * max((answer[1] for answer in refused), default=0),
            "share": sum(answer[3] for answer in accepted) / (BUDGET_S * tokens_per_second),
            "whole_requests": whole_requests(tokens_per_second), "is_in_log": "refused with 429" in log}


def measure(report, _arguments):
    load.build("muster", "muster-worker")
    rounds = [one_round(number) for number in range(ROUNDS)]
    report.raw["rounds"] = rounds
    for found in rounds:
        print(f"  {found}")
    report.add(at_most("slowest answer of what was let in, the worst round", max(found["slowest_s"] for found in rounds), WAIT_S, 2, " s"))
    shares = ", ".join(f"{found['share']:.2f}" for found in rounds)
    report.add(at_least(f"requests let in beyond those that make up {SHARE} of the budget, median of the rounds (tokens let in: {shares} of it)",
                        statistics.median(found["accepted"] - found["whole_requests"] for found in rounds), 0))
    report.add(holds("all others are refused with Retry-After",
                     all(found["other"] == 0 and found["with_retry_after"] == found["refused"] > 0 for found in rounds),
                     "; ".join(f"{found['accepted']} let in, {found['with_retry_after']} of {found['refused']}" for found in rounds)))
    report.add(holds("the server's log tells of the refusals", all(found["is_in_log"] for found in rounds),
                     f"{sum(found['is_in_log'] for found in rounds)} of {ROUNDS} rounds"))
