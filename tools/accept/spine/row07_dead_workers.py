"""Workers killed at random, stopped, and all killed at once: the run ends well with the same bits."""

import json
import random
import signal
import subprocess
import time

import texts
import vectors
from programs import (CORPUS, LIFE_MODEL, children_of, devices, embed, embed_command, is_alive, kill, remove_output, restart_count, scratch,
                      wait_for_growth)
from report import at_least, holds

TITLE = "kill -9 of a random worker 20 times, SIGSTOP of one, all workers at once: nothing is lost"
IS_TIMED = False

KILL_COUNT = 20
DEVICES = ("--devices", devices(2), "--precision", "fp32")


class DisturbedRun:
    """`muster embed` in the background, and the worker processes it has."""

    def __init__(self, source, out):
        remove_output(out)
        self.out = out
        self.process = subprocess.Popen(embed_command(source, out, *DEVICES, "--json", "--quiet", model=LIFE_MODEL),
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def workers(self):
        return children_of(self.process.pid)

    def wait_for_workers(self, count, without=()):
        """Those that run; one that was killed is a child until the parent has seen its end."""
        while self.process.poll() is None:
            found = [worker for worker in self.workers() if worker not in without]
            if len(found) >= count:
                return found
            time.sleep(0.001)
        return []

    def finish(self, limit_s):
        out, err = self.process.communicate(timeout=limit_s)
        return self.process.returncode, json.loads(out) if out.strip() else {}, err


def check_result(report, what, run, outcome, reference):
    code, final, err = outcome
    report.raw[what] = {"exit": code, "report": final, "stderr": err[-4000:]}
    report.add(holds(f"{what}: the run ends well", code == 0, f"exit code {code}", "exit code 0"))
    if code == 0:
        same = vectors.file_hash(run.out) == reference
        report.add(holds(f"{what}: the output", same, "the same bits" if same else "differs", "the same bits"))
    return final


def kill_spread_over_the_run(report, source, generator, duration_s, reference):
    run = DisturbedRun(source, scratch("faults-killed.npy"))
    # A restart costs time, so the moments are drawn from a little more than half of the undisturbed duration.
    moments = sorted(generator.uniform(0.02, 0.6) * duration_s for _ in range(KILL_COUNT))
    start, killed, dead = time.monotonic(), [], set()
    for moment in moments:
        time.sleep(max(0, moment - (time.monotonic() - start)))
        workers = run.wait_for_workers(1, without=dead)
        if workers:
            victim = generator.choice(workers)
            if kill(victim):
                dead.add(victim)
                killed.append([round(time.monotonic() - start, 3), victim])
    final = check_result(report, f"{KILL_COUNT} x kill -9", run, run.finish(20 * duration_s + 120), reference)
    report.raw["killed"] = killed
    report.add(at_least("kills that met a live worker", len(killed), KILL_COUNT, digits=0))
    if final:
        report.add(at_least("restarts counted in the table", restart_count(final), len(killed) - 1, digits=0))


def stop_one(report, source, generator, duration_s, reference):
    run = DisturbedRun(source, scratch("faults-stopped.npy"))
    wait_for_growth(run.process, part_of(run.out), 0)
    victim = generator.choice(run.workers())
    kill(victim, signal.SIGSTOP)
    outcome = run.finish(20 * duration_s + 300)
    check_result(report, "SIGSTOP of one", run, outcome, reference)
    report.add(holds("SIGSTOP of one: the stopped process is gone", not is_alive(victim), f"pid {victim}"))


def kill_all(report, source, duration_s, reference):
    run = DisturbedRun(source, scratch("faults-all.npy"))
    wait_for_growth(run.process, part_of(run.out), 0)
    run.wait_for_workers(2)
    for worker in run.workers():
        kill(worker)
    check_result(report, "all workers at once", run, run.finish(20 * duration_s + 120), reference)


def part_of(out):
    return out.with_name(out.name + ".part")


def measure(report, arguments):
    generator = random.Random(arguments.seed)
    print(f"  seed  {arguments.seed}")
    report.raw["seed"] = arguments.seed

    out = scratch("faults-whole.npy")
    whole = embed(CORPUS, out, *DEVICES, model=LIFE_MODEL)
    kill_spread_over_the_run(report, CORPUS, generator, whole["wall_seconds"], vectors.file_hash(out))

    sample, out = texts.sample_file(), scratch("faults-sample.npy")
    part = embed(sample, out, *DEVICES, model=LIFE_MODEL)
    stop_one(report, sample, generator, part["wall_seconds"], vectors.file_hash(out))
    kill_all(report, sample, part["wall_seconds"], vectors.file_hash(out))
