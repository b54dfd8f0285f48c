"""Screens at 60, 80, 120 and 200 columns in a real terminal: as kept, no word broken, nothing cut in a pipe.

The kept texts (tests/screens/golden) are compared by ./test as well, made without a terminal; here the terminal's own
size counts, `top` draws with curses, and `embed` runs.
"""

import os
import re
import sys
import time

from devices.screen import Screen
from programs import CORPUS, MODEL, MUSTER, ROOT, embed_command, remove_output, scratch
from report import at_most, holds, skipped

TITLE = "help, devices, embed, plan, doctor and top at 60, 80, 120 and 200 columns: whole words, as kept"
IS_TIMED = True

SCREENS = ROOT / "tests" / "screens"
sys.path.insert(0, str(SCREENS))
import recordings  # noqa: E402
import run as kept  # noqa: E402

LAST_MOMENT = "\x1b[C" * (recordings.SECONDS - 1)  # so many steps to the right
FIRST_FRAME_MS = 100
CORPUS_LINES = 12_000
# Long enough that what is printed does not scroll.
TALL = 200
ETA = re.compile(r"ETA (?:(\d+):)?(\d+):(\d\d)")


def printed(words, columns, **variables):
    """The screen of a command that ends by itself."""
    screen = Screen([MUSTER, *words], columns, TALL, environment=dict(os.environ, **variables))
    try:
        screen.wait(30)
        return screen.text()
    finally:
        screen.close()


def commands(report):
    """Help, plan and estimate: the kept texts, and by rules what depends on this machine."""
    wrong, faults = [], []
    for name, words in kept.COMMANDS.items():
        for columns, _ in kept.SIZES:
            if not kept.compare(f"{name}-{columns}", printed(words, columns), False):
                wrong.append(f"{name}-{columns}")
    report.add(holds("help, plan, estimate", not wrong, f"{len(kept.COMMANDS) * len(kept.SIZES)} screens, not as kept: {', '.join(wrong) or 'none'}"))
    for name, words in {"devices": ["devices"], "doctor": ["doctor", "--no-compute"], "config": ["config"]}.items():
        # Loads and times are others a moment later: words alone count. A path is a word, however long.
        texts = {columns: re.sub(r"\S*/\S*|\d[\d.,]*", "", printed(words, columns)) for columns, _ in kept.SIZES}
        faults += kept.broken_rules(f"top-{name}", texts)
    report.raw["faults"] = faults
    report.add(holds("devices, doctor and config of this machine: whole words within the width", not faults, "; ".join(faults[:5]) or "no fault"))


def tops(report, paths):
    wrong = []
    for name in ("top-cpu", "top-gpus"):
        recording = paths[kept.SCREENS[name][1]]
        for columns, rows in kept.SIZES:
            screen = Screen([MUSTER, "top", "--replay", recording], columns, rows)
            try:
                screen.wait_for(lambda text: "replay 1/" in text)
                screen.send(LAST_MOMENT)
                screen.wait_for(lambda text: re.search(r"replay (\d+)/\1 ", text))
                # The footer of a replay has its own keys; the rest is what print_screen makes.
                if not kept.compare(f"{name}-{columns}", screen.settle(), False):
                    wrong.append(f"{name}-{columns}")
            finally:
                screen.close()
    report.add(holds("top of a CPU machine and of 8 GPUs", not wrong, f"{2 * len(kept.SIZES)} screens, not as kept: {', '.join(wrong) or 'none'}"))


def pipes(report, paths):
    faults = kept.pipes(MUSTER, paths)
    report.add(holds("nothing is cut, wrapped or coloured in a pipe", not faults, "; ".join(faults[:5]) or "no fault"))


def seconds_left(text):
    """The ETA of a bar; None where there is none."""
    found = ETA.search(text)
    return int(found.group(1) or 0) * 3600 + int(found.group(2)) * 60 + int(found.group(3)) if found else None


def embed(report):
    """A real run on two halves of the CPU: when something is seen, what the ETA says, and what is left."""
    if not CORPUS.exists() or not MODEL.exists():
        report.add(skipped("progress of embed", f"no corpus or model in {CORPUS.parents[1]}"))
        return
    texts, out = scratch("screens.txt"), scratch("screens.npy")
    with CORPUS.open(encoding="utf-8") as lines:
        texts.write_text("".join(line for line, _ in zip(lines, range(CORPUS_LINES))), encoding="utf-8")
    remove_output(out)
    screen = Screen(embed_command(texts, out, "--devices", "2xcpu"), 80, 24)
    seen, frame = [], ""
    try:
        screen.wait_for(lambda text: text.strip())
        first_ms = (time.monotonic() - screen.started) * 1000
        while screen.process.poll() is None:
            screen.read(0.1)
            text = screen.text()
            left = seconds_left(text)
            if left is not None:
                seen.append((time.monotonic(), left))
                frame = text
        screen.wait()
        end, last = time.monotonic(), screen.text()
    finally:
        screen.close()
    # How much later than said a moment before it would be ready: by itself an ETA only falls.
    jumps = [(after[1] + after[0]) - (before[1] + before[0]) for before, after in zip(seen, seen[1:])]
    errors = [abs(left - (end - at)) for at, left in seen]
    report.raw["embed"] = {"first_frame_ms": first_ms, "eta": [(at - seen[0][0], left) for at, left in seen], "frame": frame, "end": last}
    report.add(at_most("something is seen after", first_ms, FIRST_FRAME_MS, 0, " ms"))
    report.add(holds("a lane for each device", all(re.search(rf"^ cpu:{i} .* texts/s +\d+ %", frame, re.MULTILINE) for i in (0, 1)), frame.strip()))
    report.add(at_most("the end moves between two looks, at most", max(map(abs, jumps), default=float("inf")), 3, 1, " s"))
    report.add(at_most("the ETA is wrong by, in the mean", sum(errors) / len(errors) if errors else float("inf"), 4, 1, " s"))
    lines = last.strip().splitlines()
    report.add(holds("the report alone is left", lines[0].startswith(f"{CORPUS_LINES:,} texts in ") and "ETA" not in last, f"{len(lines)} lines"))
    report.add(at_most("lines of the report", len(lines), 8, 0))
    report.add(holds("no word is broken in it", not kept.broken_rules("embed", {80: last}), "80 columns"))


def measure(report, _arguments):
    folder = scratch("screens")
    folder.mkdir(exist_ok=True)
    paths = recordings.write(folder)
    commands(report)
    tops(report, paths)
    pipes(report, paths)
    embed(report)
