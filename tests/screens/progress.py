"""`muster embed` in a pseudo-terminal: its progress is there from the start, and nothing of it is left at the end.

    progress.py MUSTER ZERO_WORKER
"""

import pathlib
import signal
import sys
import tempfile

from terminals import Terminal

MODEL = pathlib.Path(__file__).resolve().parents[1] / "models" / "tiny"


class Job:
    """A folder with texts and a stand-in for torch, and the run of `muster embed` in it."""

    def __init__(self, muster, worker, folder, name, *flags, count=2000, orders="", columns=80, rows=24, **variables):
        texts, torch = folder / f"{name}.txt", folder / "torch"
        texts.write_text("".join(f"text {number}\n" for number in range(count)))
        (torch / "lib").mkdir(parents=True, exist_ok=True)
        (torch / "lib" / "libtorch_cpu.so").touch()
        (torch / "version.py").write_text("__version__ = '2.11.0+cpu'\n")
        self.terminal = Terminal([muster, "embed", MODEL, texts, "-o", folder / f"{name}.npy", "--devices", "2xcpu", "--precision", "fp32",
                                  "--torch-root", torch, "--worker-program", worker, "--cache-dir", folder / "cache", *flags],
                                 columns, rows, ZERO_WORKER=orders, **variables)


def check_whole(muster, worker, folder):
    """A run to its end: first a phase, then a lane for each device, at last the report alone."""
    terminal = Job(muster, worker, folder, "whole").terminal
    code, raw, text = terminal.end(), terminal.raw, terminal.lines.text()
    terminal.close()
    faults = [] if code == 0 else [f"whole: exit {code}"]
    for phase in ("looking for devices", "reading the model", "starting workers", "loading the model"):
        if phase not in raw:
            faults.append(f"whole: nothing is said of {phase}")
    if not text.startswith("2,000 texts in ") or "%]" in text or "[" in text.splitlines()[-1]:
        faults.append(f"whole: something is left beside the report:\n{text}")
    return faults


def check_lanes(muster, worker, folder):
    """While it runs: a lane for each device above the bar; after Ctrl-C what to do next, and no bar."""
    # The workers stop while they load, so that the lines stay as they are until the signal.
    terminal = Job(muster, worker, folder, "lanes", orders="hang_load=1").terminal
    terminal.wait_for(lambda text: "loading the model" in text)
    screen = terminal.lines.text().splitlines()
    terminal.process.send_signal(signal.SIGINT)
    code, text, restored = terminal.end(), terminal.lines.text(), terminal.is_restored()
    terminal.close()
    faults = []
    if len(screen) != 3 or not screen[0].startswith(" cpu:0 ") or not screen[1].startswith(" cpu:1 "):
        faults.append(f"lanes: not a line for each device: {screen}")
    if code != 130 or text != "muster: stopped before a row was finished; nothing of this run is kept" or not restored:
        faults.append(f"lanes: after Ctrl-C, exit {code}:\n{text}")
    return faults


def check_low(muster, worker, folder):
    """On a screen of four rows the bar is one line."""
    terminal = Job(muster, worker, folder, "low", orders="hang_load=1", rows=4).terminal
    terminal.wait_for(lambda text: "loading the model" in text)
    screen = terminal.lines.text()
    terminal.process.send_signal(signal.SIGTERM)
    terminal.end()
    terminal.close()
    return [] if screen.startswith("loading the model") and "\n" not in screen else [f"low: {screen}"]


def check_dumb(muster, worker, folder):
    """A terminal that cannot move its cursor gets no sequence, and no colour."""
    terminal = Job(muster, worker, folder, "dumb", TERM="dumb").terminal
    code, raw = terminal.end(), terminal.raw
    terminal.close()
    return [] if code == 0 and "\x1b" not in raw and "\r " not in raw else [f"dumb: exit {code}: {raw!r}"]


def check_quiet(muster, worker, folder):
    """--quiet writes nothing at all."""
    terminal = Job(muster, worker, folder, "quiet", "--quiet").terminal
    code, raw = terminal.end(), terminal.raw
    terminal.close()
    return [] if code == 0 and raw == "" else [f"quiet: exit {code}: {raw!r}"]


def main():
    muster, worker = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    checks = (check_whole, check_lanes, check_low, check_dumb, check_quiet)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for check in checks:
            faults += check(muster, worker, pathlib.Path(folder))
    for fault in faults:
        print(fault)
    print(f"{len(checks)} runs of embed, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
