"""Groups sources that can be compiled as one file.

    unity_groups.py GROUP_SIZE FILE...

Prints a CMake list of groups, the files of each separated by bars. Files share a group when no name that one of them
declares for itself (in an unnamed namespace, as a test or as a macro) occurs in another.
"""

import re
import sys

COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'', re.S)
# What changes the rest of a group: headers whose macros are words that others use, and other instruction sets. Files
# with one stay alone.
GREEDY = re.compile(r"^#include <(?:n?curses|term)\.h>|^#pragma (?:GCC|clang) (?:target|optimize|attribute)", re.M)
WORD = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
CALL = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*(?=\()")
# A macro may be defined for one file and change what the next one reads.
MACRO = re.compile(r"^\s*#\s*define\s+(\w+)", re.M)
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.M)
UNNAMED = re.compile(r"^(?:inline )?namespace \{$(.*?)^\}  // namespace$", re.M | re.S)


def own_names(text):
    """(names, functions) declared in unnamed namespaces. The code is clang-formatted: what such a namespace
    declares begins in the first column."""
    names, functions = set(), set()
    for block in UNNAMED.findall(text):
        for line in COMMENT_OR_LITERAL.sub(" ", block).splitlines():
            if not re.match(r"\w|\[\[", line) or re.match(r"(TEST|TEST_F|TEST_P|INSTANTIATE\w+|namespace)\b", line):
                continue
            kinds = re.search(r"\b(?:struct|class|enum|union)\s+(?:class\s+)?(\w+)", line)
            head, mark, _ = re.sub(r"\[\[.*?\]\]", "", line).partition("(") if not kinds else (kinds.group(1), "", "")
            if "=" in head or "{" in head or ";" in head:
                head, mark = re.split(r"[={;\[]", head, 1)[0], ""
            last = re.findall(r"\w+", head)[-1:]
            (functions if mark else names).update(last)
    return names, functions


def read(path):
    """(the names that `path` declares for itself, the words it uses); None twice when it must stay alone."""
    with open(path, encoding="utf-8") as file:
        raw = file.read()
    if GREEDY.search(raw):
        return None, None
    names, functions = own_names(raw)
    text = COMMENT_OR_LITERAL.sub(" ", raw)
    names |= set(MACRO.findall(text)) | {f"{suite}_{name}" for suite, name in TEST.findall(text)}
    own = names | {f"{name}(" for name in functions}
    return own, set(WORD.findall(text)) | {f"{name}(" for name in CALL.findall(text)} | own


def groups(files, size, more_words=lambda path: set()):
    """First fit, in the order given, so that a change moves few files. `more_words` are those that a file uses beside
    the ones that stand in it."""
    found, alone = [], []
    for path in files:
        own, words = read(path)
        if own is None:
            alone.append([path])
            continue
        words |= more_words(path)
        for group in found:
            if len(group["files"]) < size and not own & group["words"] and not words & group["own"]:
                break
        else:
            group = {"files": [], "own": set(), "words": set()}
            found.append(group)
        group["files"].append(path)
        group["own"] |= own
        group["words"] |= words
    return [group["files"] for group in found] + alone


if __name__ == "__main__":
    print(";".join("|".join(group) for group in groups(sys.argv[2:], int(sys.argv[1]))))
