"""Frames that `muster top --replay FILE --once` prints, compared with golden/: text that a person has looked at.

    run.py MUSTER             compares; exits 1 and shows the difference where one is not as written
    run.py MUSTER --update    writes what is printed now, for review
"""

import argparse
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

import recordings

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
LOCALES = {"utf8": "C.UTF-8", "ascii": "C"}


def print_frame(muster, path, locale):
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TZ": "UTC", "LC_ALL": locale}
    done = subprocess.run([muster, "top", "--replay", path, "--once"], env=environment, capture_output=True, timeout=60, check=False)
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("muster", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    chosen = parser.parse_args()
    wrong = 0
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, path in recordings.write(folder).items():
            for characters, locale in LOCALES.items():
                count += 1
                text = print_frame(chosen.muster.resolve(), path, locale)
                wrong += not compare(f"once-{name}-{characters}", text, chosen.update)
    print(f"{count} frames, {wrong} not as written")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
