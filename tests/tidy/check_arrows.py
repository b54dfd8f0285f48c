"""Every include between folders of src/ and stand_ins/ is an arrow its CMakeLists.txt declares, and every declared arrow
is one that arrows.txt allows and that some file uses."""

import pathlib
import re

from sources import cmake_list, code_files, module_lists, module_of, report, root_from_arguments

# The command line may wire everything together, but never links torch.
NEVER_FROM_CLI = {"engine", "worker"}


def allowed_arrows(table):
    """Reads arrows.txt: a module, a colon, the modules it may include; `*` is everything."""
    allowed = {}
    for line in table.splitlines():
        line = line.split("#")[0].strip()
        if line:
            module, _, targets = line.partition(":")
            allowed[module.strip()] = set(targets.split()) | {"base"}
    return allowed


def declared_arrows(root):
    declared = {}
    for cmake in module_lists(root):
        declared[cmake.parent.name] = set(cmake_list(cmake.read_text(), "DEPS"))
    return declared


def reachable(module, declared):
    """What linking `module` brings along: its arrows, and theirs."""
    seen, waiting = set(), [module]
    while waiting:
        for target in declared.get(waiting.pop(), set()) - seen:
            seen.add(target)
            waiting.append(target)
    return seen


def faults_in(root, table):
    allowed, declared = allowed_arrows(table), declared_arrows(root)
    faults = []
    for module, targets in declared.items():
        if module == "base" and targets:
            faults.append(f"src/base: base knows nothing of {' '.join(sorted(targets))}")
        elif module != "base" and module not in allowed:
            faults.append(f"src/{module}: arrows.txt does not know this folder")
        elif module != "base":
            permitted = allowed[module]
            wrong = targets & NEVER_FROM_CLI if "*" in permitted else targets - permitted
            faults += [f"src/{module}: {module} -> {t} is not in arrows.txt" for t in sorted(wrong)]
        if module in reachable(module, declared):
            faults.append(f"src/{module}: the arrows from {module} lead back to it")
    used = {module: set() for module in declared}
    for path in code_files(root):
        module = module_of(root, path)
        if module not in declared:
            continue
        for target in sorted(set(re.findall(r'#include "([a-z_]+)/', path.read_text()))):
            used[module].add(target)
            if target != module and target in declared and target not in declared[module]:
                faults.append(f"{path.relative_to(root)}: {module} -> {target} is not declared in "
                              f"{'/'.join(path.relative_to(root).parts[:2])}/CMakeLists.txt")
    for module, targets in declared.items():
        idle = targets - used[module] - {"base"}
        faults += [f"{module}: no file includes anything of {t}, which its CMakeLists.txt declares" for t in sorted(idle)]
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments(), (pathlib.Path(__file__).parent / "arrows.txt").read_text()),
           "every arrow is declared and allowed")
