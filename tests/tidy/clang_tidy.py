"""Runs clang-tidy 14 over the torch-free sources, several at once, and remembers what passed.

    clang_tidy.py ROOT BUILD_TREE

A file is looked at again when it, a header of src/ or .clang-tidy has changed; what passed is kept as one
empty file each under BUILD_TREE/tidy-passed.
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


def sources_to_check(root, tree):
    """The sources of the compile database that lie in src/. Tests, their fixtures and fuzz programs are left out,
    because half of each is gtest's macros, and so is testdata, which imitates other people's names."""
    commands = json.loads((tree / "compile_commands.json").read_text())
    files = {pathlib.Path(entry["file"]) for entry in commands}
    return sorted(f for f in files if f.is_relative_to(root / "src") and
                  "testdata" not in f.parts and not f.stem.endswith(("_test", "_fixture", "_fuzz", "_bench")))


def headers_hash(root):
    digest = hashlib.sha256((root / ".clang-tidy").read_bytes())
    for header in sorted((root / "src").rglob("*.h")):
        digest.update(header.read_bytes())
    return digest


def check(root, tree, passed, headers, source):
    """None when `source` passes, else what clang-tidy says."""
    digest = headers.copy()
    digest.update(source.read_bytes())
    digest.update(str(source.relative_to(root)).encode())
    stamp = passed / digest.hexdigest()
    if stamp.exists():
        return None
    run = subprocess.run(["clang-tidy-14", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-shadow",
                          "-p", str(tree), str(source)],
                         capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
        return None
    wrong = [line for line in run.stdout.splitlines() if re.search(r": (error|warning): ", line)]
    return "\n".join(wrong or [run.stdout + run.stderr])


def main():
    root, tree = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    passed = tree / "tidy-passed"
    passed.mkdir(exist_ok=True)
    sources, headers = sources_to_check(root, tree), headers_hash(root)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda s: check(root, tree, passed, headers, s), sources))
    report([f for f in found if f], f"{len(sources)} files pass clang-tidy")


if __name__ == "__main__":
    main()
