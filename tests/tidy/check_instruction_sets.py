"""No function is compiled for two instruction sets under one name: check_instruction_sets.py OBJECT...

The linker keeps one of several inline functions or templates of the same name. Where one of them was compiled for
AVX-512, a machine without it ends in an illegal instruction, or does not, by the order of the objects.
"""

import re
import subprocess
import sys

# The sources that are compiled for an instruction set, each alone in its object.
SETS = ("amx", "avx2", "avx512", "avx512_bf16", "avx512_vnni")


def weak_symbols(path):
    listed = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1] for line in listed.splitlines() if line.split()[-2] in "WVu"}
    return {name for name in names if not name.startswith("DW.ref.")}  # pointers for unwinding


def main(objects):
    owner = {}
    faults = 0
    for path in objects:
        for symbol in weak_symbols(path):
            owner.setdefault(symbol, []).append(path)
    special = {path for path in objects if is_special(path)}
    if len(special) < len(SETS):
        print(f"{len(special)} objects are for an instruction set, at least {len(SETS)} are expected")
        return 1
    for symbol, paths in sorted(owner.items()):
        if len(paths) > 1 and special & set(paths):
            name = subprocess.run(["c++filt", symbol], capture_output=True, text=True, check=True).stdout.strip()
            print(f"{name[:160]}\n  is compiled for more than one instruction set: {', '.join(p.split('/')[-1] for p in paths)}")
            faults += 1
    if not faults:
        print(f"{len(special)} objects for instruction sets share no function with the {len(objects)} of the engine")
    return 1 if faults else 0


def is_special(path):
    """Whether the object has a table of kernels for an instruction set, or is such a source's alone."""
    if re.search(r"_(" + "|".join(SETS) + r")\.cpp\.o$", path):
        return True
    return any(re.search(r"_(" + "|".join(SETS) + r")\.cpp$", text) for text in unity_sources(path))


def unity_sources(path):
    """The sources that a unity file includes; its text lies beside the object."""
    try:
        with open(path.removesuffix(".o"), encoding="utf-8") as text:
            return re.findall(r'#include "([^"]+)"', text.read())
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
