"""No two headers define types of the same name in the same namespace: their inline functions would be one symbol to
the linker, which keeps either."""

import re

from sources import code_files, report, root_from_arguments

NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
TYPE = re.compile(r"^(?:struct|class|enum class|enum) ([A-Z][a-z]\w*)(?: final)?(?: :[^:].*)?(?: : \w[\w:]*)? ?\{")


def faults_in(root):
    seen, faults = {}, []
    for path in code_files(root):
        if path.suffix != ".h":
            continue
        namespace = ""
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if opened := NAMESPACE.match(line):
                namespace = opened.group(1)
            if not (defined := TYPE.match(line)):
                continue
            name, place = f"{namespace}::{defined.group(1)}", f"{path.relative_to(root)}:{number}"
            if name in seen:
                faults.append(f"{place}: {name} is defined in {seen[name]} too")
            seen[name] = place
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), "every type has a name of its own")
