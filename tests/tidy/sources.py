"""What the checks of this folder share: the tracked files, the modules, and how a fault is reported."""

import pathlib
import re
import subprocess
import sys

CODE = {".h", ".cpp"}
TOPS = ("src", "stand_ins")


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
    """The .h and .cpp files of src/ and stand_ins/, whether git knows them already or not."""
    return sorted(p for top in TOPS for p in (root / top).rglob("*") if p.suffix in CODE)


def module_of(root, path):
    """The folder below src/ or stand_ins/ that `path` lies in: src/hw/nvml/nvml_visit.h is of hw."""
    return path.relative_to(root).parts[1]


def module_lists(root):
    """The CMakeLists.txt of each module; some stand-ins are single programs."""
    lists = sorted(path for top in TOPS for path in (root / top).glob("*/CMakeLists.txt"))
    return [path for path in lists if path.parent.parent.name == "src" or "muster_module(" in path.read_text()]


def cmake_list(text, keyword):
    """The names after `keyword` in a muster_module(...) call, up to the next keyword or the end."""
    text = re.sub(r"#.*", "", text)
    found = re.search(rf"\b{keyword}\s+((?:[a-z][\w./-]*\s*)+)", text)
    return found.group(1).split() if found else []


def report(faults, fine):
    """Prints the faults, or `fine`, and ends the program with the exit code ctest reads."""
    print("\n".join(faults) if faults else fine)
    sys.exit(1 if faults else 0)
