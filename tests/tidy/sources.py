"""What the checks of this folder share: the tracked files, the modules, and how a fault is reported."""

import pathlib
import re
import subprocess
import sys

CODE = {".h", ".cpp"}


def root_from_arguments():
    """The repository's top folder: the first argument, else two folders above this file."""
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()


def tracked_files(root):
    """Every file git tracks, as paths below `root`; all files where `root` is no checkout."""
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True)
    if listed.returncode != 0:
        return sorted(p.relative_to(root) for p in root.rglob("*") if p.is_file())
    names = listed.stdout.decode().split("\0")
    return [pathlib.Path(name) for name in names if name and (root / name).is_file()]


def code_files(root):
    """The .h and .cpp files of src/, whether git knows them already or not."""
    return sorted(p for p in (root / "src").rglob("*") if p.suffix in CODE)


def module_of(root, path):
    return path.relative_to(root / "src").parts[0]


def cmake_list(text, keyword):
    """The names after `keyword` in a muster_module(...) call, up to the next keyword or the end."""
    text = re.sub(r"#.*", "", text)
    found = re.search(rf"\b{keyword}\s+((?:[a-z][\w./-]*\s*)+)", text)
    return found.group(1).split() if found else []


def report(faults, fine):
    """Prints the faults, or `fine`, and ends the program with the exit code ctest reads."""
    print("\n".join(faults) if faults else fine)
    sys.exit(1 if faults else 0)
