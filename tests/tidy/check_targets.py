"""Every x_test.cpp, x_fuzz.cpp and x.cpp below src/ is named in its folder's CMakeLists.txt: a test that no
target builds cannot fail."""

import re

from sources import code_files, report, root_from_arguments


def faults_in(root):
    faults = []
    for path in code_files(root):
        if path.suffix != ".cpp":
            continue
        folder = path.parent
        while not (folder / "CMakeLists.txt").exists():
            folder = folder.parent
        named = re.split(r"[\s()]+", (folder / "CMakeLists.txt").read_text())
        if str(path.relative_to(folder)) not in named:
            faults.append(f"{path.relative_to(root)}: in no target of {folder.relative_to(root)}/CMakeLists.txt")
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), "every source file is in a target")
