"""A program in a pseudo-terminal, and the little of a terminal that its progress needs: what stands on the screen."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

LIMIT_S = 60
# Styles, and the three sequences that progress moves the cursor and erases with.
SEQUENCE = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[[\d;]*m")


class Lines:
    """What was written, as lines: carriage return, line feed, cursor up, erase to the end of the line and of the screen."""

    def __init__(self):
        self.lines, self.row, self.column = [""], 0, 0

    def feed(self, text):
        at = 0
        while at < len(text):
            sequence = SEQUENCE.match(text, at)
            if sequence:
                self.move(int(sequence.group(1) or 1), sequence.group(2))
                at = sequence.end()
                continue
            self.put(text[at])
            at += 1

    def move(self, count, what):
        if what == "A":
            self.row = max(0, self.row - count)
        elif what == "K":
            self.lines[self.row] = self.lines[self.row][:self.column]
        elif what == "J":
            self.lines[self.row] = self.lines[self.row][:self.column]
            del self.lines[self.row + 1:]

    def put(self, letter):
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[:self.column] + letter + line[self.column + 1:]
            self.column += 1

    def text(self):
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


class Terminal:
    """A program whose standard streams are a pseudo-terminal of this size."""

    def __init__(self, command, columns=80, rows=24, **variables):
        self.lines, self.raw = Lines(), ""
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        # Not "linux": there ncurses loads the mouse's libgpm, which leaks when it is built with a leak checker.
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm-256color", "LANG": "C.UTF-8"} | variables
        self.process = subprocess.Popen([str(word) for word in command], stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        env=environment, start_new_session=True)

    def read(self, limit_s):
        """Takes what comes within `limit_s`; False when nothing did."""
        if not select.select([self.master], [], [], max(0.0, limit_s))[0]:
            return False
        text = os.read(self.master, 65536).decode(errors="replace")
        self.raw += text
        self.lines.feed(text)
        return True

    def wait_for(self, is_so):
        """Reads until the lines on the screen are so."""
        end = time.monotonic() + LIMIT_S
        while not is_so(self.lines.text()):
            if time.monotonic() > end or (self.process.poll() is not None and not self.read(0)):
                raise TimeoutError(f"not on the screen:\n{self.lines.text()}")
            self.read(0.2)

    def end(self):
        """Reads until the program ends; its exit code."""
        end = time.monotonic() + LIMIT_S
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while self.read(0.05):
            pass
        return self.process.poll()

    def is_restored(self):
        """The terminal's modes are as they were before the program ran."""
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)
