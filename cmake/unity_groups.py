"""Groups sources that can be compiled as one file.

    unity_groups.py GROUP_SIZE LISTS

Each line of the file LISTS has a target, its folder and its sources, separated by bars. Prints a line for each group:
its target, its number within the target and its files. Files share a group when no name that one of them declares for
itself (in an unnamed namespace, as a test or as a macro) occurs in another; but the same `using` may stand in several.
"""

import functools
import multiprocessing
import os
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
USING = re.compile(r"^using (?:(?P<name>\w+) =\s*(?P<type>[^;]+)|(?P<other>(?:namespace |enum )?[\w:]*?(?P<last>\w+)));", re.M)
NO_NAME = r"(TEST|TEST_F|TEST_P|INSTANTIATE\w+|namespace|static_assert)\b"
UNNAMED = re.compile(r"^(?:inline )?namespace \{$(.*?)^\}  // namespace$", re.M | re.S)


def own_names(text):
    """(names, functions, usings) declared in unnamed namespaces, of `using Name = Type` and `using a::Name` the name
    with what it stands for. The code is clang-formatted: what such a namespace declares begins in the first column."""
    names, functions, usings = set(), set(), {}
    for block in UNNAMED.findall(text):
        block = COMMENT_OR_LITERAL.sub(" ", block)
        for found in USING.finditer(block):
            meaning = " ".join((found["type"] or found["other"]).split())
            usings[meaning if " " in (found["other"] or "") else found["name"] or found["last"]] = meaning
        for line in USING.sub("", block).splitlines():
            if not re.match(r"\w|\[\[", line) or re.match(NO_NAME, line):
                continue
            kinds = re.search(r"\b(?:struct|class|enum|union)\s+(?:class\s+)?(\w+)", line)
            head, mark, _ = re.sub(r"\[\[.*?\]\]", "", line).partition("(") if not kinds else (kinds.group(1), "", "")
            if "=" in head or "{" in head or ";" in head:
                head, mark = re.split(r"[={;\[]", head, 1)[0], ""
            last = re.findall(r"\w+", head)[-1:]
            (functions if mark else names).update(last)
    return names, functions, usings


def read(path):
    """(the names that `path` declares for itself, its usings, the other words in it); None when it must stay alone."""
    with open(path, encoding="utf-8") as file:
        raw = file.read()
    if GREEDY.search(raw):
        return None
    names, functions, usings = own_names(raw)
    text = COMMENT_OR_LITERAL.sub(" ", raw)
    names |= set(MACRO.findall(text)) | {f"{suite}_{name}" for suite, name in TEST.findall(text)}
    own = names | {f"{name}(" for name in functions}
    words = set(WORD.findall(text)) | {f"{name}(" for name in CALL.findall(text)} | own
    return own, usings, words - usings.keys()


def go_together(one, other):
    (own, usings, words), (other_own, other_usings, other_words) = one, other
    # `using enum` brings in names that do not stand in the file.
    if {name for name in usings.keys() ^ other_usings.keys() if name.startswith("enum ")}:
        return False
    return not (own & other_words or words & other_own or usings.keys() & other_words or words & other_usings.keys() or
                any(other_usings.get(name, meaning) != meaning for name, meaning in usings.items()))


def groups(files, size, more_words=lambda path: set()):
    """First fit, in the order given, so that a change moves few files. `more_words` are those that a file uses beside
    the ones that stand in it."""
    found, alone = [], []
    for path in files:
        names = read(path)
        if names is None:
            alone.append([path])
            continue
        own, usings, words = names
        words |= more_words(path)
        for group in found:
            if len(group["files"]) < size and go_together((own, usings, words), group["names"]):
                break
        else:
            group = {"files": [], "names": (set(), {}, set())}
            found.append(group)
        group["files"].append(path)
        for all_names, more in zip(group["names"], (own, usings, words)):
            all_names.update(more)
    return [group["files"] for group in found] + alone


def group_lines(size, line):
    target, folder, *names = line.rstrip("\n").split("|")
    found = groups([os.path.join(folder, name) for name in names], size)
    return ["|".join([target, str(number), *group]) for number, group in enumerate(found)]


def main(size, lists):
    with open(lists, encoding="utf-8") as file, multiprocessing.Pool() as pool:
        for lines in pool.imap(functools.partial(group_lines, int(size)), file):
            print("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
