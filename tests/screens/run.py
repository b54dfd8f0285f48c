"""Screens as people see them, compared with golden/: texts that a person has looked at.

    run.py MUSTER PRINT_SCREEN             compares; exits 1 and shows the difference where one is not as written
    run.py MUSTER PRINT_SCREEN --update    writes what is printed now, for review

Every screen is made at four widths and checked by rules, too: no line is wider than the terminal, no word is broken,
and nothing is cut or wrapped in a pipe.
"""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata

import recordings

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
LOCALES = {"utf8": "C.UTF-8", "ascii": "C"}
SIZES = ((60, 20), (80, 24), (120, 40), (200, 50))

# What muster prints of nothing but its arguments.
COMMANDS = {
    "help": ["--help"],
    "help-embed": ["embed", "--help"],
    "help-deploy": ["deploy", "--help"],
    "plan": ["plan", "llama-3-70b", "--machine", "sim:8xH100-80G"],
    "plan-no": ["plan", "llama-3-70b", "--machine", "sim:1xT4-16G"],
    "estimate": ["estimate", "llama-3-8b", "--machine", "sim:1xT4-16G"],
}
# What print_screen makes: of itself, or of a recording.
SCREENS = {
    "devices-cpu": ("devices", "cpu_busy"),
    "devices-gpus": ("devices", "fleet"),
    "embed-report": ("embed-report", None),
    "embed-report-verbose": ("embed-report-verbose", None),
    "embed-start": ("embed-start", None),
    "embed-progress": ("embed-progress", None),
    "doctor": ("doctor", None),
    "top-cpu": ("top", "cpu_busy"),
    "top-gpus": ("top", "fleet"),
}
# Where columns leave a narrow table, "work" has their sum.
SUMMED = {"estimate", "plan", "plan-no"}
# "devices 1 to 7 of 10; PageDown goes on": where not all has room.
OF_SMALL_SCREENS = {"1", "to", "of", "devices", "processes", "PageDown", "goes", "on"}
# Help texts that hold an ellipsis themselves.
ELLIPSES = ("MIG-…", "q4_0 …")
BLOCKS = re.compile("[\u2581-\u258f]+")


def run(command, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TZ": "UTC", "LC_ALL": "C.UTF-8"} | variables
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, timeout=60, check=False)
    return done.stdout.decode() + done.stderr.decode()


def compare(name, text, update):
    """True when golden/NAME.txt says the same."""
    path = GOLDEN / f"{name}.txt"
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return True
    wanted = path.read_text(encoding="utf-8") if path.exists() else ""
    sys.stdout.writelines(line if line.endswith("\n") else line + "\n" for line in
                          difflib.unified_diff(wanted.splitlines(True), text.splitlines(True), path.name, "now"))
    return wanted == text


def columns_of(line):
    """Columns of a terminal that a line takes; no screen here has other zero-width characters than combining ones."""
    return sum(0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


def words_of(text):
    """The words of a screen, without bars, and without the mark behind what was cut."""
    return {word.rstrip("…") for word in BLOCKS.sub(" ", text).split()} - {""}


def broken_rules(name, texts):
    """`texts` by width: what in them is too wide, or is no word of the widest one."""
    faults = []
    widest = words_of(texts[max(texts)])
    for width, text in texts.items():
        faults += [f"{name}-{width}: {columns_of(line)} columns: {line}" for line in text.splitlines() if columns_of(line) > width]
        # A command that is broken for a shell ends its lines in a backslash; a comment may go above it. Numbers of top
        # stand beside plots, whose size is that of the screen.
        mine = words_of(text) - {"\\", "#"}
        if name.startswith("top-"):
            mine = {word for word in mine if re.search("[A-Za-z]{2}", word)} - OF_SMALL_SCREENS
        if name in SUMMED:
            mine = {word for word in mine if re.search("[A-Za-z]{2}", word)} - {"work"}
        faults += [f"{name}-{width}: not a word of {name}-{max(texts)}: {word}" for word in sorted(mine - widest)]
    return faults


def frames(muster, paths, update):
    """`muster top --once` of every recording, in both character sets."""
    wrong = 0
    for name, path in paths.items():
        for characters, locale in LOCALES.items():
            text = run([muster, "top", "--replay", path, "--once"], LC_ALL=locale)
            wrong += not compare(f"once-{name}-{characters}", text, update)
    return wrong


def screens(muster, print_screen, paths, update):
    """Every screen at every width."""
    wrong, faults = 0, []
    for name in [*COMMANDS, *SCREENS]:
        texts = {}
        for width, height in SIZES:
            if name in COMMANDS:
                texts[width] = run([muster, *COMMANDS[name]], COLUMNS=str(width))
            else:
                what, recording = SCREENS[name]
                texts[width] = run([print_screen, what, width, height, *([paths[recording]] if recording else [])])
            wrong += not compare(f"{name}-{width}", texts[width], update)
        faults += broken_rules(name, texts)
    return wrong, faults


def pipes(muster, paths):
    """What goes to a program is the same as on an endless line, and nothing of it is cut."""
    faults = []
    commands = dict(COMMANDS)
    commands |= {f"help-{name}": [name, "--help"] for name in re.findall(r"^  (\w+)  ", run([muster, "--help"]), re.MULTILINE)}
    commands |= {"config": ["config"], "help of nothing": []}
    for name, words in commands.items():
        text = run([muster, *words])
        if text != run([muster, *words], COLUMNS="100000"):
            faults.append(f"{name}: wrapped in a pipe")
        for ellipsis in ELLIPSES:
            text = text.replace(ellipsis, "")
        if "…" in text or "\x1b" in text:
            faults.append(f"{name}: cut or coloured in a pipe")
        if "\x1b" not in run([muster, *words, "--color", "always"]) and words:
            faults.append(f"{name}: no colour with --color always")
    once = run([muster, "top", "--once", "--replay", paths["one"]])
    if "\x1b" in once or "\x1b" not in run([muster, "top", "--once", "--replay", paths["one"]], CLICOLOR_FORCE="1"):
        faults.append("top --once: coloured in a pipe, or not where it is forced")
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("muster", type=pathlib.Path)
    parser.add_argument("print_screen", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    chosen = parser.parse_args()
    muster, print_screen = chosen.muster.resolve(), chosen.print_screen.resolve()
    with tempfile.TemporaryDirectory() as folder:
        paths = recordings.write(folder)
        wrong = frames(muster, paths, chosen.update)
        of_sizes, faults = screens(muster, print_screen, paths, chosen.update)
        faults += pipes(muster, paths)
    for fault in faults:
        print(fault)
    count = len(paths) * len(LOCALES) + (len(COMMANDS) + len(SCREENS)) * len(SIZES)
    print(f"{count} screens, {wrong + of_sizes} not as written; {len(faults)} rules broken")
    return 1 if wrong or of_sizes or faults else 0


if __name__ == "__main__":
    sys.exit(main())
