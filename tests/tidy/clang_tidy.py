"""Runs clang-tidy 14 over the torch-free sources, several at once, and remembers what passed.

    clang_tidy.py ROOT BUILD_TREE

Sources of all folders are looked at in groups of up to 24 (cmake/unity_groups.py), because most of the time goes
into what they include; the groups lie in BUILD_TREE/tidy-groups. One with flags of its own is looked at alone. A
group is looked at again when one of its sources, a header of src/ that they include or .clang-tidy has changed; what
passed is kept as one empty file each under BUILD_TREE/tidy-passed.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

from sources import TOPS, report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "cmake"))
import unity_groups  # noqa: E402

GROUP_SIZE = 24
CONSTANT = re.compile(r"^(?:inline )?constexpr [\w:<>, ]+ (k[A-Z]\w*)", re.M)
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)[^;\n]*\{", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# Sources themselves are what the main file of a group includes.
OWN_FILES = r"/src/(?:[a-z]+/)+[a-z_0-9]+\.h$|/(?:src|stand_ins)/.*\.cpp$"


def sources_of(unit):
    """The sources that an entry of the compile database compiles: itself, or those of its group."""
    if "Unity" not in unit.parts:
        return [unit]
    return [pathlib.Path(name) for name in INCLUDE.findall(unit.read_text())]


def is_checked(root, source):
    """Tests, their fixtures and fuzz programs are left out, because half of each is gtest's macros, and so is
    testdata, which imitates other people's names."""
    return (any(source.is_relative_to(root / top) for top in TOPS) and "testdata" not in source.parts and
            not source.stem.endswith(("_test", "_fixture", "_fuzz", "_bench")))


def names_of_headers(root, source):
    """Constants and types at the top of the headers of src/ which `source` includes: another folder's source may have one
    of the same name for itself."""
    found = set()
    for file in with_headers(root, [pathlib.Path(source)]):
        if file.suffix == ".h":
            text = file.read_text()
            found |= {*CONSTANT.findall(text), *TYPE.findall(text)}
    return found


def merged_command(commands):
    """One compile command with what all of these define and where all of these look for headers."""
    words, seen = [], set()
    for command in commands:
        words_of = shlex.split(command)
        for i, word in enumerate(words_of):
            if word in ("-isystem", "-idirafter"):
                word = f"{word} {words_of[i + 1]}"
            if re.match(r"-[DI]|-isystem |-idirafter ", word) and word not in seen:
                seen.add(word)
                words += word.split(" ")
    first = shlex.split(commands[0])
    kept = [word for word in first if word.startswith("-std=")]
    return [first[1] if first[0].endswith("ccache") else first[0], *words, *kept]


def units_to_check(root, tree):
    """{entry of the compile database in BUILD_TREE/tidy-groups, which is made anew: its sources}, the largest first,
    so that no core ends up idle."""
    commands = {pathlib.Path(e["file"]): e for e in json.loads((tree / "compile_commands.json").read_text())}
    alone = {file: [file] for file in commands if "Unity" not in file.parts and is_checked(root, file)}
    unities = {file: sources_of(file) for file in sorted(commands) if "Unity" in file.parts}
    checked = {file: sources for file, sources in unities.items() if any(is_checked(root, s) for s in sources) and
               not any(part.endswith("_test.dir") for part in file.parts)}
    folder = tree / "tidy-groups"
    folder.mkdir(exist_ok=True)
    sources = sorted({s for group in checked.values() for s in group if is_checked(root, s)})
    entries = [commands[file] for file in alone]
    units = dict(alone)
    command = merged_command([commands[file]["command"] for file in checked]) if checked else []
    names = [str(source) for source in sources]
    for number, group in enumerate(unity_groups.groups(names, GROUP_SIZE, lambda name: names_of_headers(root, name))):
        unit = folder / f"group_{number}.cxx"
        unit.write_text("".join(f'#include "{source}"\n' for source in group))
        units[unit] = [pathlib.Path(source) for source in group]
        entries.append({"directory": str(tree), "file": str(unit), "arguments": [*command, "-c", str(unit)]})
    (folder / "compile_commands.json").write_text(json.dumps(entries))
    return dict(sorted(units.items(), key=lambda unit: -len(unit[1])))


def with_headers(root, sources):
    """The sources and the headers of src/ that they include, directly or not: every quoted include counts, even one
    that the preprocessor would leave out."""
    found, waiting = set(), list(sources)
    while waiting:
        file = waiting.pop()
        if file in found or not file.is_file():
            continue
        found.add(file)
        waiting += [root / top / name for top in TOPS for name in INCLUDE.findall(file.read_text())]
    return sorted(found)


def fingerprint(root, sources):
    digest = hashlib.sha256((root / ".clang-tidy").read_bytes())
    digest.update(" ".join(str(source.relative_to(root)) for source in sources).encode())
    for file in with_headers(root, sources):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def check(root, tree, passed, unit, sources):
    """None when `unit` passes, else what clang-tidy says."""
    stamp = passed / fingerprint(root, sources)
    if stamp.exists():
        return None
    run = subprocess.run(["clang-tidy-14", "--quiet", f"--config-file={root / '.clang-tidy'}",
                          f"--header-filter={OWN_FILES}",
                          # Of a group it would say that its sources are included; check_includes.py looks for it.
                          "--checks=-bugprone-suspicious-include", "--extra-arg=-Wno-unknown-warning-option",
                          "--extra-arg=-Wno-shadow", "-p", str(tree / "tidy-groups"), str(unit)], capture_output=True, text=True)
    if run.returncode == 0:
        stamp.touch()
        return None
    wrong = [line for line in run.stdout.splitlines() if re.search(r": (error|warning): ", line)]
    return "\n".join(wrong or [run.stdout + run.stderr])


def main():
    root, tree = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
    passed = tree / "tidy-passed"
    passed.mkdir(exist_ok=True)
    units = units_to_check(root, tree)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda unit: check(root, tree, passed, *unit), units.items()))
    report([f for f in found if f], f"{sum(map(len, units.values()))} files pass clang-tidy")


if __name__ == "__main__":
    main()
