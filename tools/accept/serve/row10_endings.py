"""The end of a server, of a model, of its settings, and of its parent."""

import json
import os
import signal
import subprocess
import threading
import time

from programs import MODEL, children_of, is_alive, scratch
from report import at_most, holds
from serve.running import serving
from texts import corpus_lines

TITLE = "SIGTERM under load; settings read again; a model unloaded in use; kill -9 of the parent"
IS_TIMED = False

THREADS, DRAIN_S = 16, 20


class Clients:
    """Threads that ask without pause until told to stop, and what they got."""

    def __init__(self, server, model="all-MiniLM-L6-v2", texts=8):
        self.server, self.model, self.texts = server, model, texts
        self.statuses, self.gone, self.is_over = {}, 0, threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.ask, args=(i,)) for i in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def ask(self, number):
        lines, at = corpus_lines(), number * 1000
        while not self.is_over.is_set():
            texts = [lines[(at + k) % len(lines)] for k in range(self.texts)]
            at += self.texts
            try:
                status, _ = self.server.call("POST", "/v1/embeddings", {"model": self.model, "input": texts})
            except OSError:
                self.gone += 1
                time.sleep(0.01)
                continue
            with self.lock:
                self.statuses[status] = self.statuses.get(status, 0) + 1

    def wait_for(self, status, count, limit_s=60):
        end = time.monotonic() + limit_s
        while self.statuses.get(status, 0) < count:
            assert time.monotonic() < end, (status, self.statuses)
            time.sleep(0.01)

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def end_under_load(report):
    with serving(MODEL, "--devices", "2xcpu", "--no-cache-enabled", "--drain-timeout", f"{DRAIN_S}s", name="end") as server:
        clients = Clients(server, texts=64)
        clients.wait_for(200, 50)
        begin = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        status, retry_after, late = 200, None, time.monotonic() + 2
        while status == 200 and time.monotonic() < late:
            done = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %header{retry-after}", "-H",
                                   "Content-Type: application/json", "-d", '{"model": "all-MiniLM-L6-v2", "input": "new"}',
                                   f"{server.url}/v1/embeddings"], capture_output=True, text=True)
            words = done.stdout.split()
            if done.returncode != 0:
                break
            status, retry_after = int(words[0]), (words[1:] or [None])[0]
        code = server.process.wait(DRAIN_S + 10)
        took_s = time.monotonic() - begin
        clients.stop()
    failed = {status: count for status, count in clients.statuses.items() if status not in (200, 503)}
    report.raw["end"] = {"statuses": clients.statuses, "exit": code, "seconds": took_s, "new": [status, retry_after]}
    report.add(holds("SIGTERM: in flight, answered otherwise than with 200", not failed, str(failed or 0), "0"))
    report.add(holds("SIGTERM: new work", (status == 503 and retry_after) or 503 in clients.statuses,
                     f"{status}, Retry-After {retry_after}; {clients.statuses}", "503 with Retry-After"))
    report.add(holds("SIGTERM: exit code", code == 0, str(code), "0"))
    report.add(at_most("SIGTERM: gone after", took_s, DRAIN_S, 2, " s"))


def reload_and_unload(report):
    settings = scratch("reload.yaml")
    settings.write_text("load_balancing_strategy: auto\n")
    with serving(MODEL, "--devices", "2xcpu", "--config", settings, "--no-cache-enabled", name="reload") as server:
        assert server.call("POST", "/v1/models/load", {"model": str(MODEL), "name": "second"}, timeout_s=120)[0] == 200
        clients, others = Clients(server), Clients(server, model="second")
        clients.wait_for(200, 50)
        others.wait_for(200, 50)
        settings.write_text("load_balancing_strategy: least_work\nqueue_budget: 5s\n")
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 10
        strategy = None
        while strategy != "least_work" and time.monotonic() < end:
            strategy = json.loads(server.get("/v1/config")[1])["load_balancing_strategy"]["value"]
        unloaded = server.call("POST", "/v1/models/unload", {"model": "second"})[0]
        others.wait_for(404, 20)
        clients.wait_for(200, clients.statuses[200] + 50)
        for one in (clients, others):
            one.stop()
        code = server.stop()
    report.raw["reload"] = {"clients": clients.statuses, "others": others.statuses, "strategy": strategy, "unload": unloaded, "exit": code}
    report.add(holds("settings read again on SIGHUP", strategy == "least_work", str(strategy), "least_work"))
    report.add(holds("reload and unload: answers of the model that stays", set(clients.statuses) == {200} and clients.gone == 0,
                     str(clients.statuses), "200 alone"))
    report.add(holds("unload in use: answers of the model that goes", set(others.statuses) <= {200, 404} and unloaded == 200,
                     str(others.statuses), "200, then 404"))


def parent_killed(report):
    cache = scratch("killed.cache")
    cache.unlink(missing_ok=True)
    texts = corpus_lines()[:500]
    with serving(MODEL, "--devices", "2xcpu", "--cache-file", cache, name="killed") as server:
        before = server.embed(texts)
        workers = children_of(server.process.pid)
        assert len(workers) == 2, workers
        begin = time.monotonic()
        os.kill(server.process.pid, signal.SIGKILL)
        while any(is_alive(pid) for pid in workers) and time.monotonic() - begin < 10:
            time.sleep(0.005)
        gone_s = time.monotonic() - begin
        server.process.wait()
    begin = time.monotonic()
    with serving(MODEL, "--devices", "2xcpu", "--cache-file", cache, name="again") as server:
        ready_s = time.monotonic() - begin
        after = server.embed(texts)
        hits = server.get("/metrics")[1].decode()
        server.stop()
    report.raw["killed"] = {"workers_gone_s": gone_s, "ready_again_s": ready_s,
                            "cache": [line for line in hits.splitlines() if line.startswith("muster_") and "cache" in line]}
    report.add(at_most("kill -9 of the parent: workers gone after", gone_s, 1, 3, " s"))
    report.add(at_most("ready again with the cache after", ready_s, 2, 2, " s"))
    report.add(holds("rows that are the same bits after the restart", before == after, f"{len(after)} compared"))


def measure(report, _arguments):
    end_under_load(report)
    reload_and_unload(report)
    parent_killed(report)
