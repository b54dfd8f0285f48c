"""Sources say their idea and their reasons: at least 8 % of the lines of all sources of src/ are comments, and every source but a small
one begins with one."""

import re

from sources import code_files, module_of, report, root_from_arguments

SHARE_MIN = 0.08
SMALL = 40  # lines; the header of so small a source says all there is to say
TEST = ("_test", "_fuzz", "_fixture", "_bench")
COMMENT = re.compile(r"^\s*//|\S\s+// ")


def sources_in(root):
    return [p for p in code_files(root) if p.suffix == ".cpp" and p.is_relative_to(root / "src") and not p.stem.endswith(TEST) and "testdata" not in p.parts]


def share_of(texts):
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return sum(1 for line in lines if COMMENT.search(line)) / max(1, len(lines))


def faults_in(root):
    sources = {path: path.read_text() for path in sources_in(root)}
    share = share_of(sources.values())
    faults = [] if share >= SHARE_MIN else [f"src: {share:.1%} of the lines of sources are comments; {SHARE_MIN:.0%} are asked for"]
    for path, text in sources.items():
        if len(text.splitlines()) > SMALL and not text.startswith("//"):
            faults.append(f"{path.relative_to(root)}: does not begin with a comment that says its idea")
    return faults


def shares(root):
    """{module: share of comments}, for whoever looks for the silent ones."""
    by_module = {}
    for path in sources_in(root):
        by_module.setdefault(module_of(root, path), []).append(path.read_text())
    return {module: share_of(texts) for module, texts in sorted(by_module.items())}


if __name__ == "__main__":
    report(faults_in(root_from_arguments()), f"{share_of(p.read_text() for p in sources_in(root_from_arguments())):.1%} of the lines of sources are comments")
