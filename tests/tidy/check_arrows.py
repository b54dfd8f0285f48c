"""Every include between folders of src/ and stand_ins/ is an arrow its CMakeLists.txt declares, and every declared arrow
is one that arrows.txt allows and that some file uses. arrows.txt allows nothing more, and ARCHITECTURE.md's table says the same."""

import pathlib
import re

from sources import cmake_list, code_files, module_lists, module_of, report, root_from_arguments

# A row of ARCHITECTURE.md's table of folders: the folder, and what it may include beside base.
PAGE_ROW = re.compile(r"^\| `(\w+)/` \| .* \| ([\w, –]+) \|$", re.MULTILINE)
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


def table_faults(root, table, page):
    """Rows and arrows of `table` that no folder has, and what `page`, ARCHITECTURE.md, says otherwise."""
    allowed, declared = allowed_arrows(table), declared_arrows(root)
    shown = {module: set(re.findall(r"\w+", cell)) for module, cell in PAGE_ROW.findall(page)}
    faults = []
    for module, permitted in allowed.items():
        if module not in declared:
            faults.append(f"arrows.txt: there is no folder {module}")
        elif "*" not in permitted:
            idle = permitted - declared[module] - {"base"}
            faults += [f"arrows.txt: {module} -> {t} is an arrow that its CMakeLists.txt does not declare" for t in sorted(idle)]
            if (root / "src" / module).is_dir() and shown.get(module) != permitted - {"base"}:
                faults.append(f"ARCHITECTURE.md: its row of {module} must name {' '.join(sorted(permitted - {'base'})) or 'nothing'}")
    return faults


if __name__ == "__main__":
    top, text = root_from_arguments(), (pathlib.Path(__file__).parent / "arrows.txt").read_text()
    # A copy of src/ alone has no page.
    page = top / "ARCHITECTURE.md"
    report(faults_in(top, text) + (table_faults(top, text, page.read_text()) if page.exists() else []),
           "every arrow is declared and allowed")
