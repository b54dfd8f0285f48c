"""A program in a real pseudo-terminal, and what its screen shows: pyte reads the escape sequences as a terminal does."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PYTE = "pyte==0.8.2"
# As tmux and screen call themselves: 256 colours, a mouse, and no sequence but two that pyte does not know.
TERM = "screen-256color"


def ensure_pyte():
    """Puts pyte beside the other Python packages of the rows, once."""
    try:
        import pyte
    except ImportError:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", PYTE], check=True)
        import pyte
    return pyte


def emulator(columns, rows):
    """A pyte screen and its stream, with the two sequences that curses uses and pyte lacks: scroll up and down."""
    pyte = ensure_pyte()

    class Scrolling(pyte.Screen):
        def scroll_up(self, count=1):
            self._scroll(count, self.index, bottom=True)

        def scroll_down(self, count=1):
            self._scroll(count, self.reverse_index, bottom=False)

        def _scroll(self, count, step, *, bottom):
            row, top, end = self.cursor.y, 0, self.lines - 1
            if self.margins:
                top, end = self.margins.top, self.margins.bottom
            self.cursor.y = end if bottom else top
            for _ in range(max(count, 1)):
                step()
            self.cursor.y = row

    class ScrollingStream(pyte.ByteStream):
        csi = {**pyte.ByteStream.csi, "S": "scroll_up", "T": "scroll_down"}
        events = pyte.ByteStream.events | {"scroll_up", "scroll_down"}

    screen = Scrolling(columns, rows)
    return screen, ScrollingStream(screen)


def set_size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Screen:
    """A running program and its terminal."""

    def __init__(self, command, columns, rows, *, utf8=True, environment=None):
        self.emulated, self.stream = emulator(columns, rows)
        self.byte_count = 0
        self.started = time.monotonic()
        master, slave = pty.openpty()
        set_size(slave, columns, rows)
        self.before = termios.tcgetattr(slave)
        self.fd, self.slave = master, slave
        variables = {key: value for key, value in (environment or os.environ).items()
                     if not key.startswith("LC_") and key not in ("LANG", "NO_COLOR")}
        variables |= {"TERM": TERM, "TZ": "UTC", "LANG": "C.UTF-8" if utf8 else "C"}
        self.process = subprocess.Popen([str(word) for word in command], stdin=slave, stdout=slave, stderr=slave,
                                        env=variables, start_new_session=True)

    def resize(self, columns, rows):
        set_size(self.fd, columns, rows)
        self.emulated.resize(rows, columns)
        self.process.send_signal(signal.SIGWINCH)

    def text(self):
        lines = [line.rstrip() for line in self.emulated.display]
        while lines and not lines[-1]:
            lines.pop()
        return "\n".join(lines) + "\n"

    def read(self, limit_s):
        """Takes what comes within `limit_s`; False when nothing did."""
        ready, _, _ = select.select([self.fd], [], [], max(0.0, limit_s))
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: the program has closed its side
            return False
        self.byte_count += len(data)
        self.stream.feed(data)
        return bool(data)

    def wait_for(self, is_so, limit_s=10.0):
        """Seconds until the text of the screen satisfies `is_so`."""
        start = time.monotonic()
        while True:
            if is_so(self.text()):
                return time.monotonic() - start
            left = start + limit_s - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"not on the screen within {limit_s} s:\n{self.text()}")
            self.read(min(left, 0.5))

    def settle(self, quiet_s=0.15):
        """Reads until nothing came for so long, and returns the text."""
        while self.read(quiet_s):
            pass
        return self.text()

    def send(self, keys):
        os.write(self.fd, keys.encode() if isinstance(keys, str) else keys)

    def click(self, column, row):
        """Presses and releases the first button at a cell, counted from 0, as xterm reports it."""
        place = bytes((32 + 1 + column, 32 + 1 + row))
        self.send(b"\x1b[M " + place + b"\x1b[M#" + place)

    def bytes_in(self, duration_s):
        """How many bytes come within so long."""
        before, end = self.byte_count, time.monotonic() + duration_s
        while (left := end - time.monotonic()) > 0:
            self.read(left)
        return self.byte_count - before

    def is_restored(self):
        """The terminal's modes are as they were before the program ran."""
        return termios.tcgetattr(self.slave)[:6] == self.before[:6]

    def wait(self, limit_s=10.0):
        """Reads until the program ends; its exit code."""
        end = time.monotonic() + limit_s
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0.05):
            pass
        return self.process.wait(max(0.1, end - time.monotonic()))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.fd)
        os.close(self.slave)
