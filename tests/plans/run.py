"""Plans as text: every file of cases/ is a command of muster, what it prints, and its exit code.

    run.py MUSTER             compares; exits 1 and shows the difference where one is not as written
    run.py MUSTER --update    writes what is printed now into the files, for review
    run.py MUSTER --same N    runs every case N times with the keys of its JSON inputs in another order and under another
                              locale each time; the bytes must be the same
"""

import argparse
import difflib
import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LOCALES = ("C", "de_DE.UTF-8", "tr_TR.UTF-8", "ar_EG.UTF-8")


def read_case(path):
    """(arguments, expected output, expected exit code); the last two are None in a new file."""
    first, _, rest = path.read_text(encoding="utf-8").partition("\n")
    if not first.startswith("$ muster "):
        sys.exit(f"{path.name}:1: wanted a line '$ muster ...'")
    body, mark, code = rest.rpartition("\n[exit ")
    if not mark and rest.startswith("[exit "):
        body, mark, code = "", "[exit ", rest[len("[exit "):]
    return shlex.split(first)[2:], body if mark else None, int(code.strip().rstrip("]")) if mark else None


def run(muster, arguments, folder=HERE, locale="C"):
    # At 80 columns, as on a terminal of that width; what the caller has set is not the case's business.
    environment = {"PATH": os.environ["PATH"], "LC_ALL": locale, "HOME": "/nonexistent", "COLUMNS": "80"}
    done = subprocess.run([muster, *arguments], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, check=False)
    return done.stdout.decode("utf-8").rstrip("\n"), done.returncode


def shuffled(value, generator):
    if isinstance(value, dict):
        keys = list(value)
        generator.shuffle(keys)
        return {key: shuffled(value[key], generator) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, generator) for item in value]
    return value


def shuffled_copy(target, generator):
    """The inputs with their keys in another order; the order of a map is no meaning either."""
    for name in ("models", "machines", "maps"):
        shutil.copytree(HERE / name, target / name, dirs_exist_ok=True)
    for path in target.rglob("*.json"):
        path.write_text(json.dumps(shuffled(json.loads(path.read_text(encoding="utf-8")), generator)), encoding="utf-8")


def check_same(muster, cases, count):
    """How many outputs differed from the written one over `count` runs of every case."""
    wrong = 0
    for index in range(count):
        with tempfile.TemporaryDirectory() as name:
            shuffled_copy(pathlib.Path(name), random.Random(index))
            for path in cases:
                arguments, expected, code = read_case(path)
                if run(muster, arguments, pathlib.Path(name), LOCALES[index % len(LOCALES)]) != (expected, code):
                    print(f"{path.name}: other bytes in run {index}")
                    wrong += 1
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("muster", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--same", type=int, metavar="N")
    options = parser.parse_args()
    muster = options.muster.resolve()
    cases = sorted((HERE / "cases").glob("*.txt"))
    if options.same:
        wrong = check_same(muster, cases, options.same)
        print(f"{len(cases)} cases x {options.same} runs: {wrong} differ")
        sys.exit(1 if wrong else 0)
    wrong = 0
    for path in cases:
        arguments, expected, code = read_case(path)
        found, found_code = run(muster, arguments)
        if options.update:
            path.write_text(f"$ muster {shlex.join(arguments)}\n{found}\n[exit {found_code}]\n", encoding="utf-8")
        elif (found, found_code) != (expected, code):
            wrong += 1
            print(f"{path.name}: exit {found_code}, wanted {code}")
            sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
                (expected or "").split("\n"), found.split("\n"), "written", "found", lineterm=""))
    print(f"{len(cases)} plans, {wrong} not as written")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
