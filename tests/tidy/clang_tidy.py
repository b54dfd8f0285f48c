"""Runs clang-tidy 14 over the torch-free sources, several at once, and remembers what passed.

    clang_tidy.py ROOT BUILD_TREE

BUILD_TREE may compile sources in groups (MUSTER_UNITY); a group is then looked at as one, so that what its sources
include is read once. A group is looked at again when one of its sources, a header of src/ that they include or
.clang-tidy has changed; what passed is kept as one empty file each under BUILD_TREE/tidy-passed.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from sources import report

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# In a group the sources themselves are what the main file includes.
OWN_FILES = r"/src/[a-z]+/[a-z_0-9]+\.h$|/src/.*\.cpp$"


def sources_of(unit):
    """The sources that an entry of the compile database compiles: itself, or those of its group."""
    if "Unity" not in unit.parts:
        return [unit]
    return [pathlib.Path(name) for name in INCLUDE.findall(unit.read_text())]


def is_checked(root, source):
    """Tests, their fixtures and fuzz programs are left out, because half of each is gtest's macros, and so is
    testdata, which imitates other people's names."""
    return (source.is_relative_to(root / "src") and "testdata" not in source.parts and
            not source.stem.endswith(("_test", "_fixture", "_fuzz", "_bench")))


def units_to_check(root, tree):
    """{entry of the compile database: its sources}, the largest first, so that no core ends up idle. A group
    with one source to check is checked, its other sources with it; the groups of test programs are not."""
    commands = json.loads((tree / "compile_commands.json").read_text())
    units = {file: sources_of(file) for file in sorted({pathlib.Path(entry["file"]) for entry in commands})}
    checked = {file: sources for file, sources in units.items() if any(is_checked(root, s) for s in sources) and
               not any(part.endswith("_test.dir") for part in file.parts)}
    return dict(sorted(checked.items(), key=lambda unit: -len(unit[1])))


def with_headers(root, sources):
    """The sources and the headers of src/ that they include, directly or not: every quoted include counts, even one
    that the preprocessor would leave out."""
    found, waiting = set(), list(sources)
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        waiting += [root / "src" / name for name in INCLUDE.findall(file.read_text())]
    return sorted(found)


def fingerprint(root, sources):
    digest = hashlib.sha256((root / ".clang-tidy").read_bytes())
    digest.update(" ".join(str(source.relative_to(root)) for source in sources).encode())
    for file in with_headers(root, sources):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def check(root, tree, passed, unit, sources):
    """None when `unit` passes, else what clang-tidy says."""
    stamp = passed / fingerprint(root, sources)
    if stamp.exists():
        return None
    run = subprocess.run(["clang-tidy-14", "--quiet", f"--config-file={root / '.clang-tidy'}",
                          f"--header-filter={OWN_FILES}",
                          # Of a group it would say that its sources are included; check_includes.py looks for it.
                          "--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-unknown-warning-option",
                          "--extra-arg=-Wno-shadow", "-p", str(tree), str(unit)], capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
        return None
    wrong = [line for line in run.stdout.splitlines() if re.search(r": (error|warning): ", line)]
    return "\n".join(wrong or [run.stdout + run.stderr])


def main():
    root, tree = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    passed = tree / "tidy-passed"
    passed.mkdir(exist_ok=True)
    units = units_to_check(root, tree)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda unit: check(root, tree, passed, *unit), units.items()))
    report([f for f in found if f], f"{sum(map(len, units.values()))} files pass clang-tidy")


if __name__ == "__main__":
    main()
