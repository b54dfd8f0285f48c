"""No tracked text names a folder of one machine or the host of a package registry: scripts take paths as
arguments, and packages come through their ordinary clients. A folder name is bracketed below so that this
file does not match itself."""

import re

from sources import report, root_from_arguments, tracked_files

MACHINE_PATH = re.compile(r"(?<![\w.])/(?:wor[k]|tm[p]/w|roo[t]|hom[e]/\w+)/")
REGISTRY = re.compile(r"pyp[i]\.org|pythonhoste[d]\.org|de[b]\.debian\.org|registry\.npmj[s]|crate[s]\.io|"
                      r"proxy\.golan[g]|maven\.apach[e]")


def faults_in(root):
    faults = []
    for path in tracked_files(root):
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for pattern, what in ((MACHINE_PATH, "a folder of one machine"), (REGISTRY, "a registry's host")):
                found = pattern.search(line)
                if found:
                    faults.append(f"{path}:{number}: {what}: {found.group(0)}")
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), "no machine's paths, no registry's hosts")
