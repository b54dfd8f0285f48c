"""`muster top` in a pseudo-terminal: it draws, takes keys, and gives the terminal back whatever ends it.

    terminal.py MUSTER
"""

import os
import signal
import sys

from terminals import Terminal

# How it is ended, and its exit code: after a request as a shell shows it, after other signals by the signal itself.
ENDS = {"q": 0, signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: -signal.SIGHUP, signal.SIGQUIT: -signal.SIGQUIT}


def wait_for_output(terminal, wanted):
    """Until `wanted` came, wherever on the screen it stands."""
    terminal.wait_for(lambda _: wanted in terminal.raw)


def check_end(muster, how, wanted):
    terminal = Terminal([muster, "top", "--machine", "sim:2xL4-24G"], TERM="xterm")
    wait_for_output(terminal, "cuda:1")
    os.write(terminal.master, b"?")
    wait_for_output(terminal, "DRAM%    %")
    if how == "q":
        os.write(terminal.master, b"q")
    else:
        terminal.process.send_signal(how)
    code, restored = terminal.end(), terminal.is_restored()
    terminal.close()
    if code == wanted and restored:
        return []
    return [f"{how}: exit {code}, wanted {wanted}; the terminal is {'' if restored else 'not '}given back"]


def check_small(muster):
    """On a screen that is too small it says so, and still ends by its key."""
    terminal = Terminal([muster, "top", "--machine", "sim:2xL4-24G"], 20, 5, TERM="xterm")
    wait_for_output(terminal, "too small")
    os.write(terminal.master, b"q")
    code = terminal.end()
    terminal.close()
    return [] if code == 0 else [f"too small: exit {code}"]


def check_dumb(muster):
    """A terminal that cannot move its cursor is refused, with what to do instead."""
    terminal = Terminal([muster, "top"], TERM="dumb")
    code, text = terminal.end(), terminal.lines.text()
    terminal.close()
    words = " ".join(text.split())
    is_right = code == 2 and "TERM is dumb" in words and "`muster top --once` prints a frame on any" in words
    return [] if is_right else [f"dumb: exit {code}: {text}"]


def main():
    muster = sys.argv[1]
    faults = []
    for how, wanted in ENDS.items():
        faults += check_end(muster, how, wanted)
    faults += check_small(muster) + check_dumb(muster)
    for fault in faults:
        print(fault)
    print(f"{len(ENDS)} ways to end and 2 terminals, {len(faults)} wrong")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
