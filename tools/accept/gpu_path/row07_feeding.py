"""How many tokens one parent can feed to devices, where computing costs nothing: zero_worker answers rows of zeros."""

import os
import pathlib
import shutil
import statistics
import subprocess

import texts
from gpu_path import standin
from programs import BUILD, embed, remove_output
from report import at_least, at_most, holds

TITLE = "Eight devices with free products: tokens a second through the parent, and its CPU time"
IS_TIMED = True

LOOP_US_MAX, PARENT_US_MAX = 0.1, 0.6  # CPU time a token: of the thread that cannot be divided, and of all
SCALING_MIN = 1.8                      # two cores against one
DIM = 384                              # of all-MiniLM-L6-v2
COPIES = 10                            # of the corpus
DEVICES = 8
MEMORY = pathlib.Path("/dev/shm")


def skip_reason():
    return standin.skip_reason() if len(os.sched_getaffinity(0)) >= 2 else "it compares two cores with one"


def build_zero_worker():
    """An optimised one, and all programs of its build: they refuse each other otherwise."""
    subprocess.run(["ninja", "-C", BUILD, "muster", "muster-worker", "zero_worker"], check=True, stdout=subprocess.DEVNULL)
    alone = BUILD / "stand_ins" / "zero_worker" / "zero_worker"  # of a build without tests
    worker = alone if alone.exists() else BUILD / "bin" / "zero_worker"
    if not (worker.parent / standin.LIBRARY.name).exists():  # by which stand-ins are found; this worker does not open it
        shutil.copy(standin.LIBRARY, worker.parent)
    return worker


def run(source, out, worker, cores):
    """A run on these cores, the workers on the same ones."""
    allowed = os.sched_getaffinity(0)
    os.environ["ZERO_WORKER"] = f"dim={DIM}"
    os.sched_setaffinity(0, cores)
    try:
        report = embed(source, out, "--devices", f"{DEVICES}xstandin", "--precision", "fp32", "--batch-tokens", "16384",
                       "--worker-program", worker)
    finally:
        os.sched_setaffinity(0, allowed)
        del os.environ["ZERO_WORKER"]
        remove_output(out)
    tokens = report["token_count"]
    return {"cores": len(cores), "tokens": tokens, "tokens_per_second": tokens / report["elapsed_seconds"],
            "loop_us": report["loop_cpu_seconds"] / tokens * 1e6, "parent_us": report["parent_cpu_seconds"] / tokens * 1e6,
            "worker_us": report["worker_cpu_seconds"] / tokens * 1e6, "time": report["time"]}


def measure(report, arguments):
    worker = build_zero_worker()
    source = MEMORY / f"muster-feeding-{os.getpid()}.txt"
    out = source.with_suffix(".npy")
    source.write_text("".join(f"{line}\n" for line in texts.corpus_lines()) * COPIES, encoding="utf-8")
    try:
        first, second = sorted(os.sched_getaffinity(0))[:2]
        # One core is either of the two: what else runs on the machine may slow one of them.
        runs = [run(source, out, worker, cores) for _ in range(arguments.rounds)
                for cores in ({first}, {first, second}, {second}, {first, second})]
    finally:
        source.unlink()
        remove_output(out)
    report.raw["runs"] = runs

    def median(name, cores):
        return statistics.median(one[name] for one in runs if one["cores"] == cores)

    for cores in (1, 2):
        report.add(holds(f"tokens/s on {cores} core{'s' if cores > 1 else ''}, workers included", True,
                         f"{median('tokens_per_second', cores) / 1e6:.2f} million", "as it is"))
    report.add(at_most("the loop's CPU time a token", median("loop_us", 2), LOOP_US_MAX, 3, " us"))
    report.add(at_most("the parent's CPU time a token", median("parent_us", 2), PARENT_US_MAX, 3, " us"))
    report.add(at_least("two cores against one", median("tokens_per_second", 2) / median("tokens_per_second", 1), SCALING_MIN))
