"""What the figures were measured on, and whether anything else was running."""

import contextlib
import os
import pathlib
import platform
import subprocess
import threading

import run_interleaved


def cpu_flags():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


def has_amx():
    return "amx_bf16" in cpu_flags()


def has_gpu():
    return pathlib.Path("/proc/driver/nvidia/version").exists()


def cpu_name():
    """With family and model where x86 has them: "AMD EPYC" alone may be any generation."""
    fields = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    name = fields.get("model name", "unknown")
    if "cpu family" not in fields:
        return name
    return f"{name} (family {fields['cpu family']}, model {fields['model']})"


def fingerprint(root):
    commit = subprocess.run(["git", "-C", str(root), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    # The results that earlier rows have saved change nothing that is measured.
    changed = subprocess.run(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no", "--", ".",
                              ":!benchmarks/results"], capture_output=True, text=True)
    wanted = {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"}
    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "instruction_sets": sorted(cpu_flags() & wanted),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "kernel": platform.release(),
        "commit": commit.stdout.strip() + ("+changes" if changed.stdout.strip() else ""),
        "gpu": has_gpu(),
    }


STOLEN_TOLD = 0.005  # in some ten seconds, or in all: from here on a note is printed
STOLEN_WINDOW = 10   # seconds


def stolen_ticks():
    """(stolen, all) of all CPUs since the start."""
    fields = run_interleaved.cpu_ticks()
    return fields[7], sum(fields)


def stolen_share(begin, end):
    return (end[0] - begin[0]) / max(1, end[1] - begin[1])


@contextlib.contextmanager
def watch_stolen(raw):
    """Keeps in `raw` what share of the processors the hypervisor gave to others meanwhile: over all, and in the worst ten seconds."""
    looks, is_over = [stolen_ticks()], threading.Event()

    def look():
        while not is_over.wait(1):
            looks.append(stolen_ticks())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        looks.append(stolen_ticks())
        whole = stolen_share(looks[0], looks[-1])
        worst = max((stolen_share(begin, end) for begin, end in zip(looks, looks[STOLEN_WINDOW:])), default=whole)
        raw["stolen_share"], raw["stolen_share_worst_10s"] = whole, worst
        if max(whole, worst) >= STOLEN_TOLD:
            print(f"  note  the hypervisor gave {whole:.2%} of this machine's processors to others meanwhile, {worst:.2%} in the worst ten seconds",
                  flush=True)
