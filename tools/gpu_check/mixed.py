"""A query at a time beside nothing, beside bulk of two clients, and while the worker is killed: what each answer took.

usage: mixed.py MUSTER MODEL TEXTS DEVICES PRECISION      one line of JSON a case; exit code 1 where an answer was lost
"""

import http.client
import json
import multiprocessing
import sys
import time

from served import served

SECONDS = 4


def ask(connection, texts):
    """Seconds until the answer; raises where the answer is not 200."""
    begin = time.perf_counter()
    connection.request("POST", "/v1/embeddings", json.dumps({"model": "m", "input": texts}), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {body[:200]}")
    return time.perf_counter() - begin


def client(port, texts, step, until, answers):
    """Asks for `step` texts at a time until `until`, and then puts (texts answered, failures, seconds of each)."""
    connection, taken, failures, at = http.client.HTTPConnection("127.0.0.1", port), [], [], 0
    while time.time() < until:
        try:
            taken.append(ask(connection, texts[at:at + step]))
        except (OSError, RuntimeError, http.client.HTTPException) as error:
            failures.append(str(error))
            connection.close()
        at = (at + step) % (len(texts) - step)
    answers.put((step, len(taken) * step, failures[:3], taken))


def case(name, server, texts, steps, kill=False):
    """Runs one client for each of `steps` and prints what the queries took. True where no answer failed."""
    answers, until = multiprocessing.Queue(), time.time() + SECONDS
    # Each has texts of its own, and enough of them for its step where the corpus is short.
    own = [[texts[(i * 5000 + k) % len(texts)] for k in range(max(len(texts), 2 * step))] for i, step in enumerate(steps)]
    clients = [multiprocessing.Process(target=client, args=(server.port, own[i], step, until, answers)) for i, step in enumerate(steps)]
    for process in clients:
        process.start()
    if kill:
        time.sleep(SECONDS / 3)
        server.kill_workers()
    results = [answers.get(timeout=60) for _ in clients]
    for process in clients:
        process.join()
    queries = sorted(t for step, _, _, taken in results if step == 1 for t in taken)
    failures = [f for _, _, failed, _ in results for f in failed]
    quantile = lambda q: round(1000 * queries[min(len(queries) - 1, int(q * len(queries)))], 3)
    print(json.dumps({
        "case": name, "queries": len(queries), "p50_ms": quantile(0.5), "p90_ms": quantile(0.9), "p99_ms": quantile(0.99),
        "slowest_ms": quantile(1), "bulk_texts_per_second": sum(n for step, n, _, _ in results if step > 1) / SECONDS,
        "failures": failures}), flush=True)
    return not failures


def main():
    muster, model, corpus, devices, precision = sys.argv[1:]
    with open(corpus, encoding="utf-8") as file:
        texts = file.read().splitlines()
    with served(muster, f"m={model}", "--devices", devices, "--precision", precision, "--no-cache-enabled") as server:
        good = case("warm", server, texts, [1, 256])
        good &= case("alone", server, texts, [1])
        good &= case("beside bulk of 256 texts", server, texts, [1, 256])
        good &= case("beside bulk of two clients", server, texts, [1, 256, 2048])
        good &= case("the worker killed", server, texts, [1, 256], kill=True)
    print(json.dumps({"exit_code_after_sigterm": server.exit_code}))
    return 0 if good and server.exit_code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
