"""No file above 600 lines and no function above 70, unless the comment before it gives the reason: a
sentence with the words "long because"."""

import re

from sources import report, root_from_arguments, tracked_files

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
CHECKED = {".h", ".cpp", ".py", ".cmake"}
REASON = re.compile(r"\blong because\b", re.IGNORECASE)
STATEMENT = re.compile(r"^\s*(\}?\s*else\b|if|for|while|switch|do|try|catch|return|namespace|class|struct|enum|union|"
                       r"extern|[\w:<>&*, ]*=\s*\[|.*\[[^\]]*\]\s*\()")


LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'')


def opening_line(lines, index):
    """The line where the parentheses that close on `lines[index]` open."""
    balance = 0
    while True:
        balance += lines[index].count(")") - lines[index].count("(")
        if balance <= 0 or index == 0:
            return index
        index -= 1


def signature_start(lines, index):
    """The first line of the signature that ends on `lines[index]`, a constructor's initialisers included."""
    start = opening_line(lines, index)
    member = start
    while member > 0 and not lines[member].lstrip().startswith(": ") and lines[member - 1].endswith(","):
        member -= 1
    if member > 0 and lines[member].lstrip().startswith(": "):
        return opening_line(lines, member - 1)
    return start


def functions(lines):
    """(first line, last line) of every function body, counted from zero; the code is clang-formatted, so a
    body ends with the first brace at its signature's own indent."""
    lines = [LITERAL.sub("0", line) for line in lines]
    for index, line in enumerate(lines):
        if not re.search(r"\)[\w\s:&>*<-]*\{$", line):
            continue
        start = signature_start(lines, index)
        if STATEMENT.match(lines[start]) or lines[start].lstrip().startswith("//"):
            continue
        indent = len(lines[start]) - len(lines[start].lstrip())
        closing = " " * indent + "}"
        end = next((i for i in range(index + 1, len(lines)) if lines[i].startswith(closing)), index)
        yield start, end


def comment_above(lines, start):
    comment = []
    while start > 0 and lines[start - 1].lstrip().startswith("//"):
        start -= 1
        comment.append(lines[start])
    return " ".join(reversed(comment))


def faults_of(name, text):
    lines = text.splitlines()
    faults = []
    if len(lines) > FILE_LINES_MAX and not REASON.search("\n".join(lines[:20])):
        faults.append(f"{name}: {len(lines)} lines; {FILE_LINES_MAX} without a reason in its first comment")
    if name.suffix in {".h", ".cpp"}:
        for start, end in functions(lines):
            length = end - start + 1
            if length > FUNCTION_LINES_MAX and not REASON.search(comment_above(lines, start)):
                faults.append(f"{name}:{start + 1}: a function of {length} lines; {FUNCTION_LINES_MAX} without a "
                              "reason in the comment above it")
    return faults


if __name__ == "__main__":
    root = root_from_arguments()
    found = []
    for path in tracked_files(root):
        if path.suffix in CHECKED:
            found += faults_of(path, (root / path).read_text())
    report(found, "every file and function is of a length that can be read")
