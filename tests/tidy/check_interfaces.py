"""An interface has at most six methods: a class with pure virtual functions that others implement. A class that is `final`, or
that its own factory alone implements and whose comment says so ("sealed"), may have more."""

import re

from sources import code_files, report, root_from_arguments

METHODS_MAX = 6
CLASS = re.compile(r"^(?:class|struct) (\w+)(?: : [^{]+)? \{")
PURE = re.compile(r"\) ?(?:const)?(?: noexcept)? = 0;")


def classes(lines):
    """(line number, name, comment above, body lines) of each class that is declared in the first column."""
    for index, line in enumerate(lines):
        found = CLASS.match(line)
        if not found:
            continue
        comment, above = [], index - 1
        while above >= 0 and lines[above].startswith("//"):
            comment.append(lines[above])
            above -= 1
        end = next((i for i in range(index, len(lines)) if lines[i].startswith("};")), index)
        yield index + 1, found.group(1), " ".join(reversed(comment)), lines[index:end]


def faults_in(root):
    faults = []
    for path in code_files(root):
        if path.suffix != ".h":
            continue
        for number, name, comment, body in classes(path.read_text().splitlines()):
            count = len(PURE.findall("\n".join(body)))
            if count > METHODS_MAX and "sealed" not in comment.lower():
                faults.append(f"{path.relative_to(root)}:{number}: {name} has {count} pure virtual methods; {METHODS_MAX} "
                              "without the word \"sealed\" and the reason in its comment")
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), f"no interface has more than {METHODS_MAX} methods")
