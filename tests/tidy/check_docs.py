"""Every module has a README of at most 60 lines, and every relative link of a document leads somewhere."""

import re

from sources import report, root_from_arguments, tracked_files

README_LINES_MAX = 60
LINK = re.compile(r"\]\(([^)\s]+)\)")
OUTSIDE = ("http:", "https:", "mailto:", "#")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def faults_in(root):
    faults = []
    for cmake in sorted((root / "src").glob("*/CMakeLists.txt")):
        readme = cmake.parent / "README.md"
        if not readme.exists():
            faults.append(f"{cmake.parent.relative_to(root)}: no README.md")
        elif len(readme.read_text().splitlines()) > README_LINES_MAX:
            faults.append(f"{readme.relative_to(root)}: more than {README_LINES_MAX} lines")
    for path in tracked_files(root):
        if path.suffix != ".md":
            continue
        for link in LINK.findall(without_code((root / path).read_text())):
            target = link.split("#")[0]
            if not link.startswith(OUTSIDE) and not ((root / path).parent / target).exists():
                faults.append(f"{path}: the link {link} leads nowhere")
    return faults


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), "every module has its README and every link resolves")
