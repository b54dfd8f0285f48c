"""What muster itself costs: start, time to the first vector, memory over five million lines, CPU share."""

import pathlib
import statistics
import subprocess
import time

import texts
from programs import MUSTER, ROOT, embed, embed_command, remove_output, scratch
from report import at_most, holds

TITLE = "Start, time to the first vector, the parent's memory and its share of the CPU"
IS_TIMED = True

HELP_MS_MAX = 20.0
FIRST_VECTOR_S_MAX = 1.5
PARENT_MIB_MAX = 200.0
GROWTH_MIB_MAX = 10.0  # "flat": between a third of the run and its end
CPU_SHARE_MAX = 0.05
LINE_COUNT = 5_000_000
HELP_RUNS = 21
TEST_TREE = ROOT / "build-test" / "plain"


def help_ms():
    times = []
    for _ in range(HELP_RUNS):
        start = time.perf_counter()
        subprocess.run([MUSTER, "--help"], check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
    return times


def build_with_zero_worker():
    """The test worker that answers zeros, and a muster of the same build: they refuse each other otherwise."""
    subprocess.run(["ninja", "-C", TEST_TREE, "muster", "zero_worker"], check=True, stdout=subprocess.DEVNULL)
    return TEST_TREE / "bin" / "muster", TEST_TREE / "bin" / "zero_worker"


def many_lines():
    path = scratch("lines-5m.txt")
    if not path.exists():
        lines = texts.corpus_lines()
        with path.open("w", encoding="utf-8") as out:
            for index in range(LINE_COUNT):
                out.write(f"{lines[index % len(lines)]} {index}\n")
    return path


def memory_of(pid):
    """(resident now, the most ever) in MiB; None when the process is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if line.startswith(("VmRSS", "VmHWM")))
        return tuple(int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    except (OSError, KeyError):
        return None


def memory_over_five_million(report):
    muster, worker = build_with_zero_worker()
    out = scratch("five-million.npy")
    remove_output(out)
    command = embed_command(many_lines(), out, "--devices", "1xcpu", "--precision", "fp32", "--worker-program", worker,
                            "--quiet", muster=muster)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    samples, start = [], time.monotonic()
    while process.poll() is None:
        memory = memory_of(process.pid)
        if memory:
            samples.append([round(time.monotonic() - start, 2), *memory])
        time.sleep(0.2)
    report.raw["memory_mib"] = samples
    code = process.wait()
    report.add(holds("five million lines", code == 0 and bool(samples), f"exit code {code} after {time.monotonic() - start:.0f} s "
                     f"{process.stderr.read()[-200:]}", "exit code 0"))
    remove_output(out)
    if code != 0 or not samples:
        return
    third = [resident for moment, resident, _ in samples if moment > samples[-1][0] / 3]
    report.add(at_most("the parent's memory, the most", max(most for _, _, most in samples), PARENT_MIB_MAX,
                       unit=" MiB"))
    report.add(at_most("growth of the last two thirds", max(third) - third[0], GROWTH_MIB_MAX, unit=" MiB"))


def measure(report, arguments):
    times = help_ms()
    report.raw["help_ms"] = times
    report.add(at_most("muster --help, median", statistics.median(times), HELP_MS_MAX, unit=" ms"))

    source, out = texts.sample_file(), scratch("footprint.npy")
    embed(source, out, "--devices", "2xcpu")  # the precision verdict is cached from here on
    runs = [embed(source, out, "--devices", "2xcpu") for _ in range(arguments.rounds)]
    report.raw["runs"] = runs
    first = statistics.median(run["first_vector_seconds"] for run in runs)
    report.add(at_most("time to the first vector, median", first, FIRST_VECTOR_S_MAX, unit=" s"))
    share = statistics.median(run["parent_cpu_seconds"] / (run["parent_cpu_seconds"] + run["worker_cpu_seconds"])
                              for run in runs)
    report.add(at_most("the parent's share of the CPU (x 100)", share * 100, CPU_SHARE_MAX * 100, unit=" %"))

    memory_over_five_million(report)
