"""What `./package --gpu-check` makes, run where there is nothing but it and torch."""

import re
import subprocess

from gpu_path.container import Container, skip_reason  # noqa: F401  a row is asked for it
from programs import ROOT, scratch
from report import at_most, holds

TITLE = "The kit for a machine with a GPU, in an empty container: on the stand-in, on the CPU, without torch"
IS_TIMED = False

PART_MB_MAX, RESULT_MB_MAX, RESULTS_MAX, CALL_S_MAX = 45, 16, 8, 480
STEPS = 15
PACKAGE_S = 1500  # it builds what is not built
GOES_ON = 75  # the exit code of `run` where the same command goes on
OURS = re.compile(r"lib(c|m|pthread|dl|rt|resolv|util|anl)\.so|ld-linux|linux-vdso|libtorch|libc10|libcu|libnv")


def foreign_libraries(kit):
    """Libraries that a program of the kit would take from elsewhere, glibc's and torch's aside."""
    found = set()
    for program in sorted((kit / "bin").iterdir()):
        for line in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines():
            name, _, path = line.strip().partition(" => ")
            if path.startswith("/") and not OURS.match(name) and not path.startswith(str(kit)):
                found.add(f"{program.name}: {name}")
    return sorted(found)


def rehearse(report, container, kind):
    results = container.root / "results" / kind
    calls = []
    while not calls or (calls[-1]["code"] == GOES_ON and len(calls) < STEPS):
        calls.append(container.run(["/kit/muster-gpu-check/run", f"/results/{kind}", "--on", kind]))
    report.raw[kind] = calls
    steps = (results / "steps.txt").read_text().splitlines() if (results / "steps.txt").exists() else []
    done = [line for line in steps if " done " in line]
    report.add(holds(f"on {kind}: steps done", len(done) == STEPS and calls[-1]["code"] == 0,
                     f"{len(done)} of {STEPS}" + "".join(f"; {line}" for line in steps if " done " not in line), str(STEPS)))
    report.add(at_most(f"on {kind}: the longest call", max(call["seconds"] for call in calls), CALL_S_MAX, 0, " s"))
    files = [file for file in results.iterdir() if file.is_file()] if results.exists() else []
    report.add(holds(f"on {kind}: there are results", bool(files), calls[-1]["output"][-200:] if not files else "yes"))
    if not files:
        return
    # Gone with the container: the last of the log says why a step failed.
    report.raw[f"{kind} log"] = (results / "log.txt").read_text(errors="replace")[-20000:] if (results / "log.txt").exists() else None
    report.add(at_most(f"on {kind}: files of results", len(files), RESULTS_MAX, 0))
    report.add(at_most(f"on {kind}: the largest", max(file.stat().st_size for file in files) / 1e6, RESULT_MB_MAX, 2, " MB"))


def measure(report, arguments):
    made = subprocess.run([ROOT / "package", "--gpu-check"], cwd=ROOT, capture_output=True, text=True, timeout=PACKAGE_S)
    report.raw["package"] = made.stdout[-2000:] + made.stderr[-2000:]
    parts = sorted((ROOT / "dist").glob("muster-gpu-check-*.tar.xz"))
    report.add(holds("./package --gpu-check", made.returncode == 0 and bool(parts), f"exit code {made.returncode}, {len(parts)} parts"))
    if made.returncode != 0:
        return
    report.add(at_most("the largest part", max(part.stat().st_size for part in parts) / 1e6, PART_MB_MAX, 1, " MB"))
    with Container(scratch("kit-container")) as container:
        for part in parts:
            subprocess.run(["tar", "-xf", part, "-C", container.root / "kit"], check=True)
        kit = container.root / "kit" / "muster-gpu-check"
        foreign = foreign_libraries(kit)
        report.add(holds("libraries from elsewhere", not foreign, ", ".join(foreign) or "none", "none but glibc's and torch's"))
        for kind in ("standin", "cpu"):
            rehearse(report, container, kind)
        bare = container.run(["/kit/muster-gpu-check/run", "/results/bare"], with_torch=False)
        report.raw["without torch"] = bare
        report.add(holds("without torch", bare["code"] == 4 and bare["output"].count("\n") == 1 and "torch" in bare["output"],
                         bare["output"].strip() or f"exit code {bare['code']}", "one sentence, exit code 4"))
