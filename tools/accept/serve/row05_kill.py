"""A worker is killed each second under load."""

import time

from programs import LIFE_MODEL, devices, kill
from report import at_most, holds
from serve.running import serving
from serve.watching import Watch, asking, right_answers, texts

TITLE = "kill -9 of a worker each second for 60 s with 64 requests in flight"
IS_TIMED = True

SECONDS, IN_FLIGHT, TEXTS = 60, 64, 2000
DETECTED_MS, REPLACED_S = 50, 2.0


class Kills:
    """What followed each kill, found out between the kills."""

    def __init__(self, watch):
        self.watch, self.open, self.done = watch, [], []

    def strike(self, name):
        before = self.watch.devices()[name]
        if not before["pid"]:
            return False
        at = time.monotonic()
        if not kill(before["pid"]):
            return False
        self.open.append({"device": name, "pid": before["pid"], "at": at, "texts": before["text_count"]})
        return True

    def look(self):
        devices, now = self.watch.devices(), time.monotonic()
        for entry in list(self.open):
            device = devices[entry["device"]]
            if "detected_s" not in entry and (device["pid"] != entry["pid"] or device["state"] != "ready"):
                entry["detected_s"] = now - entry["at"]
                entry["texts"] = device["text_count"]
            elif "detected_s" in entry and device["state"] == "ready" and device["text_count"] > entry["texts"]:
                entry["serving_s"] = now - entry["at"]
                self.open.remove(entry)
                self.done.append(entry)


def measure(report, arguments):
    lines = texts(TEXTS)
    with serving(LIFE_MODEL, "--devices", devices(2), "--no-cache-enabled", "--queue-budget", "60s", name="kill") as server:
        known, watch = right_answers(server, lines), Watch(server)
        kills, missed = Kills(watch), 0
        with asking(server, lines, known, IN_FLIGHT) as outcome:
            names = sorted(watch.until_serving())
            begin = time.monotonic()
            for number in range(SECONDS):
                while time.monotonic() < begin + number:
                    kills.look()
                    time.sleep(0.001)
                missed += not kills.strike(names[number % len(names)])
            end = time.monotonic() + 10
            while kills.open and time.monotonic() < end:
                kills.look()
        restarts = {name: device["restart_count"] for name, device in watch.devices().items()}
        server.stop()
    report.raw.update(kills=kills.done, unanswered=kills.open, outcome=outcome, restarts=restarts, no_worker_to_kill=missed)
    every = kills.done + kills.open
    report.add(holds("requests that failed", outcome.get("failed_count") == 0,
                     f"{outcome.get('failed_count')} of {outcome.get('right', 0) + outcome.get('failed_count', 0):,} "
                     f"during {len(every)} kills; {outcome.get('failed', [])[:2]}", "0"))
    report.add(holds("wrong or double answers", outcome.get("wrong") == 0, str(outcome.get("wrong")), "0"))
    report.add(at_most("a death was noticed within (worst)", max(k.get("detected_s", 99) for k in every) * 1000, DETECTED_MS, 0, " ms"))
    report.add(at_most("a replacement served within (worst)", max(k.get("serving_s", 99) for k in every), REPLACED_S, 2, " s"))
