"""Finds every command that muster prints: in code blocks of the documentation, in the help texts and at the end of ./quickstart.

A command is a line of a ```sh block, a line among the examples of a help text, or a line that two blanks indent in a plain text.
Words in backticks that begin with `muster` and have a flag or a value are usages: they are parsed, not run.
"""

import dataclasses
import pathlib
import re
import subprocess

# What a line that is a command begins with, after its variables.
PROGRAMS = ("muster", "build/bin/muster", "bin/muster", "curl", "git", "./quickstart", "./test", "./accept", "./package", "cmake",
            "python3", "echo", "printf", "zcat", "promtool", "docker", "source", "eval", "man", "kill")
ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=(?:\$\(|\S* )?")
SPAN = re.compile(r"`((?:build/bin/|bin/)?muster [^`]*)`")


@dataclasses.dataclass
class Printed:
    place: str  # "README.md:63", "muster embed --help"
    text: str  # on one line, comments included
    is_usage: bool = False  # parsed, not run


def first_program(line):
    """The program of a command line; None where the line is none."""
    rest = line.strip()
    while True:
        assigned = ASSIGNMENT.match(rest)
        if not assigned:
            break
        rest = rest[assigned.end():].strip()
    word = rest.split(" ")[0].rstrip(";") if rest else ""
    return word if word in PROGRAMS else None


def joined(numbered):
    """Lines with those that a backslash at their end continues put together: [(number of the first, text)]."""
    result, begun = [], None
    for number, line in numbered:
        text = line.strip()
        if begun is not None:
            number, text = begun[0], begun[1] + " " + text
        if text.endswith("\\"):
            begun = (number, text[:-1].rstrip())
            continue
        begun = None
        result.append((number, text))
    return result


def fences(text):
    """[(language, [(line number, line)])] of a Markdown text."""
    blocks, language, lines = [], None, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            if language is None:
                language, lines = line.strip().strip("`") or "text", []
            else:
                blocks.append((language, lines))
                language = None
        elif language is not None:
            lines.append((number, line))
    return blocks


def in_markdown(path, name):
    text = path.read_text()
    found = []
    for language, lines in fences(text):
        is_shell = language in ("sh", "bash", "console")
        for number, line in joined(lines):
            if not line or line.startswith("#"):
                continue
            if is_shell:
                if first_program(line) is None:
                    raise SystemExit(f"{name}:{number}: a line of a shell block that begins with no known program: {line}")
                found.append(Printed(f"{name}:{number}", line))
            elif re.match(r"(build/bin/|bin/)?muster [a-z]+ (-|[A-Z]{2,}\b|\./)", line):
                raise SystemExit(f"{name}:{number}: a command in a block that is not marked as sh: {line}")
    # Usages: code blocks are blanked out, so that line numbers stay.
    prose = re.sub(r"^```.*?^```", lambda block: re.sub(r"[^\n]", " ", block[0]), text, flags=re.S | re.M)
    # A span may go on in the next line.
    for span in SPAN.finditer(prose):
        number = prose.count("\n", 0, span.start()) + 1
        found.append(Printed(f"{name}:{number}", " ".join(span[1].split()), is_usage=True))
    return found


def in_plain(text, name):
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.startswith("  ")]
    return [Printed(f"{name}:{number}", line) for number, line in joined(lines) if first_program(line)]


def in_help(text, name):
    """The lines below "examples:" to the next empty one; of one that begins otherwise nobody would know what it is."""
    lines = text.splitlines()
    if "examples:" not in lines:
        raise SystemExit(f"{name} has no examples")
    numbered = []
    for number in range(lines.index("examples:") + 1, len(lines)):
        if not lines[number].strip():
            break
        numbered.append((number + 1, lines[number]))
    for number, line in joined(numbered):
        if first_program(line) is None:
            raise SystemExit(f"{name}: an example that begins with no known program: {line}")
    return [Printed(f"{name}:{number}", line) for number, line in joined(numbered)]


def commands_of(general_help):
    """The commands that `muster --help` lists, in its order."""
    return re.findall(r"^  ([a-z]+) {2,}\S", general_help.split("\nexamples:")[0], flags=re.M)


def printed_by_help(muster):
    def help_of(*words):
        return subprocess.run([muster, *words, "--help"], capture_output=True, text=True, check=True).stdout

    general = help_of()
    found = in_help(general, "muster --help")
    for command in commands_of(general):
        found += in_help(help_of(command), f"muster {command} --help")
    return found


def printed_by_quickstart(root):
    """What ./quickstart says at its end, with the values that its variables have there."""
    text = (root / "quickstart").read_text().rpartition("<<TEXT")[2]
    for name, value in {"$vectors": ".deps/out/packages.npy", "$model": ".deps/models/all-MiniLM-L6-v2"}.items():
        text = text.replace(name, value)
    return in_plain(text, "quickstart")


def documents(root):
    """Every Markdown file that is written for users."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md")), *sorted((root / "examples").rglob("*.md"))]


def everything(root, muster):
    """Source -> what it prints, in the order in which somebody would read it."""
    root = pathlib.Path(root)
    groups = {"quickstart": printed_by_quickstart(root)}
    for path in documents(root):
        name = str(path.relative_to(root))
        printed = in_markdown(path, name)
        if printed:
            groups[name] = printed
    groups["packaging/README.txt"] = in_plain((root / "packaging/README.txt").read_text(), "packaging/README.txt")
    groups["--help"] = printed_by_help(muster)
    return groups
