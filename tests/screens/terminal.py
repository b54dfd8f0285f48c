"""`muster top` in a pseudo-terminal: it draws, takes keys, and gives the terminal back whatever ends it.

    terminal.py MUSTER
"""

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

# How it is ended, and its exit code: after a request as a shell shows it, after other signals by the signal itself.
ENDS = {"q": 0, signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: -signal.SIGHUP, signal.SIGQUIT: -signal.SIGQUIT}
LIMIT_S = 30


def read_until(fd, wanted, process):
    """What came until `wanted` did; stops the test when it does not."""
    data, end = b"", time.monotonic() + LIMIT_S
    while wanted not in data:
        if not select.select([fd], [], [], max(0.0, end - time.monotonic()))[0]:
            process.kill()
            sys.exit(f"{wanted} did not come: {data!r}")
        data += os.read(fd, 65536)
    return data


def run(muster, how):
    """The exit code, and whether the terminal is as it was."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    # Not "linux": there ncurses loads the mouse's libgpm, which leaks when it is built with a leak checker.
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm", "LANG": "C.UTF-8"}
    process = subprocess.Popen([muster, "top", "--machine", "sim:2xL4-24G"], stdin=slave, stdout=slave, stderr=slave,
                               env=environment, start_new_session=True)
    read_until(master, b"cuda:1", process)
    os.write(master, b"?")
    read_until(master, b"DRAM%    %", process)
    if how == "q":
        os.write(master, b"q")
    else:
        process.send_signal(how)
    end = time.monotonic() + LIMIT_S
    while process.poll() is None and time.monotonic() < end:
        if select.select([master], [], [], 0.05)[0]:
            os.read(master, 65536)
    code = process.poll()
    process.kill()
    restored = termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)
    return code, restored


def main():
    wrong = 0
    for how, wanted in ENDS.items():
        code, restored = run(sys.argv[1], how)
        if code != wanted or not restored:
            wrong += 1
            print(f"{how}: exit {code}, wanted {wanted}; the terminal is {'' if restored else 'not '}given back")
    print(f"{len(ENDS)} ways to end, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
