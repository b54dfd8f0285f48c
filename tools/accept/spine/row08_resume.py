"""muster itself interrupted or killed at random points, then --resume."""

import random
import signal
import subprocess
import time

import texts
import vectors
from programs import children_of, embed, embed_command, kill, remove_output, scratch, seconds_until_gone
from report import at_most, holds

TITLE = "Ctrl-C or kill -9 of muster, then --resume, at ten random points"
IS_TIMED = False

POINT_COUNT = 10
ORPHAN_S_MAX = 1.0
DEVICES = ("--devices", "2xcpu", "--precision", "fp32")


def interrupt(source, out, moment_s, number):
    """Starts a run, sends it `number` after `moment_s`, and tells what became of it and its workers."""
    remove_output(out)
    process = subprocess.Popen(embed_command(source, out, *DEVICES, "--quiet"), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    workers, end = set(), time.monotonic() + moment_s
    while time.monotonic() < end and process.poll() is None:
        workers |= set(children_of(process.pid))
        time.sleep(0.02)
    workers |= set(children_of(process.pid))
    met = process.poll() is None and kill(process.pid, number)
    code = process.wait(timeout=60)
    gone_s = seconds_until_gone(workers, limit_s=10)
    return {"moment_s": moment_s, "signal": signal.Signals(number).name, "met": met, "exit": code,
            "workers": len(workers), "workers_gone_s": gone_s, "stderr": process.stderr.read()[-1000:]}


def measure(report, arguments):
    generator = random.Random(arguments.seed)
    print(f"  seed  {arguments.seed}")
    report.raw["seed"] = arguments.seed
    source, out = texts.sample_file(), scratch("resume-whole.npy")
    whole = embed(source, out, *DEVICES)
    reference = vectors.file_hash(out)

    points, wrong, late, resumed = [], [], [], 0
    out = scratch("resume-again.npy")
    for index in range(POINT_COUNT):
        number = signal.SIGINT if index % 2 == 0 else signal.SIGKILL
        moment_s = generator.uniform(0.02, 0.9) * whole["wall_seconds"]
        point = interrupt(source, out, moment_s, number)
        while not point["met"] and moment_s > 0.1:  # the machine is faster now: the run had ended
            moment_s /= 2
            point = interrupt(source, out, moment_s, number)
        again = subprocess.run(embed_command(source, out, *DEVICES, "--resume", "--json", "--quiet"),
                               capture_output=True, text=True, timeout=600)
        point["resume_exit"], point["resume_stderr"] = again.returncode, again.stderr[-1000:]
        point["resume_report"] = again.stdout[-4000:]
        expected = 130 if number == signal.SIGINT else -signal.SIGKILL
        if point["exit"] != expected or not point["met"]:
            wrong.append(f"point {index}: exit code {point['exit']} after {point['signal']}")
        if again.returncode != 0 or vectors.file_hash(out) != reference:
            wrong.append(f"point {index}: --resume ended with {again.returncode}, or other bits")
        else:
            resumed += 1
        late.append(point["workers_gone_s"] if point["workers_gone_s"] is not None else float("inf"))
        points.append(point)
    report.raw["points"] = points
    report.add(holds("points resumed to the same bits", resumed == POINT_COUNT, f"{resumed} of {POINT_COUNT}",
                     f"{POINT_COUNT} of {POINT_COUNT}"))
    report.add(holds("nothing else went wrong", not wrong, "; ".join(wrong) or "nothing", "nothing"))
    report.add(at_most("the last worker outlived muster by", max(late), ORPHAN_S_MAX, unit=" s"))
