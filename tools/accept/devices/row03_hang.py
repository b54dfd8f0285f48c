"""One of eight GPUs hangs and is lost: the others go on, and everything says what it is."""

import json
import os
import signal
import time

from devices import fleet
from programs import scratch
from report import at_least, at_most, holds

TITLE = "One of 8 GPUs hangs for ever in a driver call, another is lost, the sampler is killed"
IS_TIMED = True

HANG_S, LOST_S = 6, 14        # after the driver is started
HUNG, LOST = "cuda:5", "cuda:2"
LINE_S, PERIOD_S = 0.025, 0.1  # four lines of the recording for each visit
SCRAPES = 100
UP_ZERO_S, SCRAPE_MS, BACK_S = 2, 20, 1


def lines(out):
    """The recording so far: its whole lines."""
    text = out.read_text()
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def gpus_of(line):
    return {device["name"]: device for device in line["devices"] if device["kind"] == "cuda"}


def visits(recording, name):
    """When a GPU answered: the newest success moves with each visit."""
    times = [gpus_of(line)[name].get("last_success") for line in recording]
    # The wall and the monotonic clock are read one after the other: the same visit may differ by microseconds.
    found = []
    for at in times:
        if at is not None and (not found or at - found[-1] > PERIOD_S / 10):
            found.append(at)
    return found


def gaps(recording, name):
    found = visits(recording, name)
    return [after - before for before, after in zip(found, found[1:])]


def first(recording, is_so, what):
    for line in recording:
        if is_so(line):
            return line
    raise RuntimeError(f"no line of the recording says that {what}")


def scrape_times(running):
    found = []
    for _ in range(SCRAPES):
        begin = time.perf_counter()
        text = running.metrics()
        found.append((time.perf_counter() - begin) * 1e3)
        assert "muster_gpu_up" in text
        time.sleep(0.02)
    return sorted(found)


def kill_sampler(running, out):
    """Seconds from the kill of the sampler until every GPU that can answer has answered again."""
    [sampler] = fleet.samplers_of(running.process.pid)
    killed = time.time()
    os.kill(sampler, signal.SIGKILL)

    def is_back():
        last = gpus_of(lines(out)[-1])
        return all(last[name].get("last_success", 0) > killed for name in last if name not in (HUNG, LOST))
    fleet.wait_until("the sampler is back", is_back, 10, 0.05)
    recording = lines(out)
    back = max(min(at for at in visits(recording, name) if at > killed) for name in gpus_of(recording[-1])
               if name not in (HUNG, LOST))
    return back - killed, recording[-1]["collector"]["restarts"]


def measure(report, _arguments):
    out = scratch("hang.jsonl")
    out.unlink(missing_ok=True)
    gpus = [{"model": "H200", "load": 0.7, **({"hang": {"from": HANG_S}} if i == 5 else {}),
             **({"lost": {"from": LOST_S}} if i == 2 else {})} for i in range(8)]
    with fleet.monitor(fleet.scenario("hang", gpus), "--out", out, "--interval", f"{int(LINE_S * 1000)}ms", "--metrics",
                       "utilization_ratio", name="hang") as running:
        fleet.wait_until("a GPU hangs", lambda: not gpus_of(lines(out)[-1])[HUNG]["up"], 60)
        scrapes = scrape_times(running)
        fleet.wait_until("a GPU is lost", lambda: not gpus_of(lines(out)[-1])[LOST]["up"], 60)
        time.sleep(2)
        recording = lines(out)
        back_s, restarts = kill_sampler(running, out)
        is_parent_there = running.process.poll() is None
    others = [name for name in gpus_of(recording[0]) if name not in (HUNG, LOST)]
    worst = {name: max(gaps(recording, name)) for name in others}
    counts = {name: len(visits(recording, name)) for name in others}
    span = recording[-1]["time"] - recording[0]["time"]
    down = {}
    for name in (HUNG, LOST):
        line = first(recording, lambda line: not gpus_of(line)[name]["up"], f"{name} is down")
        down[name] = (line["time"] - gpus_of(line)[name]["last_success"], gpus_of(line)[name]["down_reason"])
    report.raw.update({"worst_gap_s": worst, "visits": counts, "seconds": span, "down": down, "scrape_ms": scrapes,
                       "back_s": back_s, "restarts": restarts})
    show(report, worst, counts, span, down)
    report.add(at_most(f"slowest of {SCRAPES} scrapes while a GPU hangs", scrapes[-1], SCRAPE_MS, 2, " ms"))
    report.add(at_most("the sampler killed: all GPUs answer again after", back_s, BACK_S, 2, " s"))
    report.add(holds("the parent lives, one restart counted", is_parent_there and restarts == 1, f"restarts: {restarts}", "1"))


def show(report, worst, counts, span, down):
    # Two visits lie in neighbouring periods when less than two periods are between them.
    report.add(at_most("longest time between two visits to a GPU that is well", max(worst.values()) * 1e3, 2 * PERIOD_S * 1e3, 0, " ms"))
    report.add(at_least("visits to each of them, of those that were due", min(counts.values()) / (span / PERIOD_S) * 100, 99, 1, " %"))
    for name, words in ((HUNG, "hung in nvml"), (LOST, "lost")):
        seconds, reason = down[name]
        report.add(at_most(f"{name}: from its last answer to up 0", seconds, UP_ZERO_S, 2, " s"))
        report.add(holds(f"{name}: what is said of it", words in reason, reason, f"… {words} …"))
