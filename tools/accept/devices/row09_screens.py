"""`muster top` and `muster devices` as somebody sees them: golden screens, and how fast and quiet they are.

With SCREENS_UPDATE=1 in the environment the golden screens (tests/screens/golden) are written anew, for review.
"""

import os
import re
import signal
import statistics
import sys
import time

from devices import fleet
from devices.screen import Screen
from programs import MUSTER, ROOT, scratch
from report import at_most, holds

TITLE = "top and devices in a pseudo-terminal: golden screens, first frame, idle output, keys"
IS_TIMED = True

SCREENS = ROOT / "tests" / "screens"
sys.path.insert(0, str(SCREENS))
import recordings  # noqa: E402
import run as golden  # noqa: E402

UPDATES = bool(os.environ.get("SCREENS_UPDATE"))
SIZES = ((80, 24), (120, 40), (200, 60))
FIRST_FRAME_MS, KEY_MS, IDLE_BYTES = 100, 50, 4096
START_COUNT, KEY_COUNT, IDLE_SECONDS = 10, 40, 10
LAST_MOMENT = "\x1b[C" * (recordings.SECONDS - 1)  # so many steps to the right
# What `muster devices` says of the GPUs; the rest is this machine's own.
GPU_LINES = re.compile(r"device |cuda:\d|\s+(cuda:)?0 |(X|NV#|SYS)  ")


def replay_screens(report):
    """Replays are the same in every run: the whole screen counts."""
    folder = scratch("screens")
    folder.mkdir(exist_ok=True)
    paths = recordings.write(folder)
    shown = [("fleet", size, utf8, "", "") for size in SIZES for utf8 in (True, False)]
    shown += [(name, (80, 24), True, "", "") for name in ("slices", "cpu_only", "one", "rack")]
    shown += [("fleet", (80, 24), True, keys, page) for keys, page in
              (("?", "help"), ("e", "energy"), ("p\x1b[B", "processes"), ("\x1b[B\x1b[B", "chosen"), ("s" * 3, "by-memory"), ("/cuda:7\r", "filtered"))]
    wrong = []
    for name, (columns, rows), utf8, keys, page in shown:
        screen = Screen([MUSTER, "top", "--replay", paths[name]], columns, rows, utf8=utf8)
        try:
            screen.wait_for(lambda text: "replay 1/" in text)
            screen.send(LAST_MOMENT)
            screen.wait_for(lambda text: re.search(r"replay (\d+)/\1 ", text))
            screen.settle()
            screen.send(keys)
            label = f"top-{name}-{columns}x{rows}-{'utf8' if utf8 else 'ascii'}{'-' + page if page else ''}"
            if not golden.compare(label, screen.settle(), UPDATES):
                wrong.append(label)
        finally:
            screen.close()
    report.add(holds("screens of muster top", not wrong, f"{len(shown)} screens, not as written: {', '.join(wrong) or 'none'}"))


def without_own(text, columns):
    """The GPUs of a screen of `muster devices`, without what the CPUs of this machine change: the width of columns, where
    UUIDs are cut on narrow screens, which CPUs are near."""
    lines = []
    for line in text.splitlines():
        if not GPU_LINES.match(line):
            continue
        line = re.sub(r"  +", "  ", line)
        line = re.sub(r"  (nearest CPUs|-|cpu:\d+ \(.*)$", "", line)
        lines.append(line if columns == SIZES[-1][0] else re.sub(r"GPU-[0-9a-f…~-]*", "GPU-", line))
    return "\n".join(lines) + "\n"


def devices_screens(report, scenario):
    wrong = []
    for columns, rows in SIZES:
        for utf8 in (True, False):
            for what in ((), ("--topology",)):
                screen = Screen([MUSTER, "devices", "--nvml-path", fleet.FAKE_NVML, *what], columns, rows, utf8=utf8,
                                environment=fleet.environment(scenario))
                try:
                    code = screen.wait()
                    text = without_own(screen.text(), columns)
                finally:
                    screen.close()
                label = f"devices{''.join(what)}-{columns}x{rows}-{'utf8' if utf8 else 'ascii'}"
                if code != 0 or not golden.compare(label, text, UPDATES):
                    wrong.append(label)
    report.add(holds("screens of muster devices", not wrong, f"12 screens, not as written: {', '.join(wrong) or 'none'}"))


def live(scenario, columns=80, rows=24, *options):
    return Screen([MUSTER, "top", "--nvml-path", fleet.FAKE_NVML, *options], columns, rows, environment=fleet.environment(scenario))


def first_frames(report, scenario):
    times = []
    for _ in range(START_COUNT):
        screen = live(scenario)
        try:
            screen.wait_for(lambda text: "cuda:7" in text)
            times.append((time.monotonic() - screen.started) * 1000)
        finally:
            screen.close()
    report.raw["first_frame_ms"] = times
    report.add(at_most(f"first frame with eight GPUs, median of {START_COUNT}", statistics.median(times), FIRST_FRAME_MS, 0, " ms"))


def idle_output(report, scenario):
    for columns, rows in SIZES:
        screen = live(scenario, columns, rows)
        try:
            screen.wait_for(lambda text: "cuda:7" in text)
            screen.bytes_in(3)  # rates are there, and idle GPUs have settled
            rate = screen.bytes_in(IDLE_SECONDS) / IDLE_SECONDS
        finally:
            screen.close()
        report.raw[f"idle_bytes_per_second_{columns}x{rows}"] = rate
        report.add(at_most(f"output when nothing changes, {columns}x{rows}", rate, IDLE_BYTES, 0, " B/s"))


def key_times(report, scenario, what):
    screen = live(scenario)
    times = []
    try:
        screen.wait_for(lambda text: "cuda:7" in text)
        for number in range(KEY_COUNT):
            before = "DRAM%    %" in screen.text()
            screen.settle(0.02)
            screen.send("?")
            times.append(screen.wait_for(lambda text, was=before: ("DRAM%    %" in text) != was) * 1000)
            screen.bytes_in(0.03 + number * 0.001)  # at another phase of the ticks each time
        last = screen.settle()
    finally:
        screen.close()
    report.raw[f"key_ms_{what}"] = times
    report.add(at_most(f"a key until the screen shows it, worst of {KEY_COUNT}, {what}", max(times), KEY_MS, 0, " ms"))
    return last


def way_out(report, scenario):
    """The terminal is as it was, whatever ends the program."""
    left = []
    for number in (None, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGSEGV, signal.SIGABRT):
        screen = live(scenario)
        try:
            screen.wait_for(lambda text: "cuda:7" in text)
            if number is None:
                screen.send("q")
            else:
                screen.process.send_signal(number)
            screen.wait()
            if not screen.is_restored():
                left.append("q" if number is None else signal.Signals(number).name)
        finally:
            screen.close()
    report.add(holds("the terminal is given back", not left, f"not after: {', '.join(left) or 'none of q and six signals'}"))


def measure(report, _arguments):
    idle = fleet.scenario("screens-idle", [{"model": "H200", "count": 8}])
    hang = fleet.scenario("screens-hang", [{"model": "H200", "count": 7}, {"model": "H200", "hang": {"from": 1}}])
    replay_screens(report)
    devices_screens(report, idle)
    first_frames(report, idle)
    idle_output(report, idle)
    key_times(report, idle, "all well")
    last = key_times(report, hang, "one GPU hangs")
    report.add(holds("the GPU that hangs says so", "DOWN hung in nvml" in last,
                     next((line for line in last.splitlines() if line.startswith("cuda:7")), "cuda:7 is not shown")))
    way_out(report, idle)
