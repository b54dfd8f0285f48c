"""What reviews, a new user and the documents' readers found, and what answers it: findings.txt names it, and it is looked at."""

import pathlib
import re
import subprocess

from ground.row01_faults import TEST_S, run_ctest, run_gtest
from programs import ROOT
from report import holds, skipped

TITLE = "Each finding about the house, its first contact and its promises: its test passes, or the place that answers it is there"
IS_TIMED = False

FINDINGS = pathlib.Path(__file__).with_name("findings.txt")
GTEST = re.compile(r"^\w+_test$")
LISTS = pathlib.Path(__file__).parents[1]


def findings():
    """[(line number, what was found, how it is answered, where)]; a line of another form is an error of findings.txt."""
    rows = []
    for number, line in enumerate(FINDINGS.read_text().splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ", 2)]
        if len(parts) != 3 or not all(parts) or not (parts[1] in HOWS or GTEST.match(parts[1])):
            raise ValueError(f"findings.txt:{number}: wants `what was found | how | where`: {line}")
        rows.append((number, *parts))
    return rows


def text_of(path):
    return " ".join(path.read_text(errors="replace").split())


def place_and_text(where):
    place, _, text = where.partition(": ")
    return ROOT / place, " ".join(text.split())


def in_file(where):
    path, text = place_and_text(where)
    if not text or not path.is_file():
        return where, f"{path.relative_to(ROOT)} is not there" if text else "no text is named"
    return where, None if text in text_of(path) else f"{path.relative_to(ROOT)} does not say: {text}"


def is_gone(where):
    path, text = place_and_text(where)
    if not text:
        return where, f"{where} is there" if path.exists() else None
    if not path.exists():
        return where, f"{path.relative_to(ROOT)} is not there to be looked at"
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in (".h", ".cpp", ".md") and "_test" not in p.name)
    found = [str(p.relative_to(ROOT)) for p in files if text in text_of(p)]
    return where, f"{text} stands in {found[0]}" if found else None


def is_unchanged(where):
    place, _, commit = where.partition(" since ")
    log = subprocess.run(["git", "-C", ROOT, "log", "--no-merges", "--diff-filter=MD", "--format=%h", f"{commit}..HEAD", "--", place],
                         capture_output=True, text=True)
    if log.returncode != 0:
        return where, log.stderr.strip()
    return where, f"changed by {log.stdout.split()[0]}" if log.stdout.strip() else None


def is_row(where):
    name, _, number = where.partition(".")
    rows = list((LISTS / name).glob(f"row{int(number):02}_*.py"))
    return f"./accept {where}", None if rows else f"there is no row {where}"


def by_ctest(pattern):
    ran, wrong = run_ctest(pattern)
    return f"{ran} passed (ctest -R {pattern})", wrong


HOWS = {"ctest": by_ctest, "file": in_file, "gone": is_gone, "unchanged": is_unchanged, "row": is_row, "stays": None,
        "open": None}
# Nothing to run here: what stands there is said. A row of a list says itself whether it passes.
UNTRIED = {"stays": "stays as it is", "open": "not done yet", "row": "shown by ./accept"}


def answer(how, where):
    """(what answers it, what is wrong or None)."""
    if how in HOWS:
        return HOWS[how](where)
    ran, wrong = run_gtest(how, where)
    return f"{ran} passed ({how})", wrong


def measure(report, arguments):
    rows = findings()
    report.add(holds("findings.txt lists findings", bool(rows), str(len(rows)), "one or more"))
    for number, what, how, where in rows:
        raw = {"line": number, "what": what, "how": how, "where": where}
        report.raw.setdefault("findings", []).append(raw)
        if how in UNTRIED and not (how == "row" and is_row(where)[1]):
            report.add(skipped(what, f"{UNTRIED[how]}: {where}"))
            continue
        try:
            said, wrong = answer(how, where)
        except subprocess.TimeoutExpired:
            said, wrong = where, f"no end within {TEST_S} s"
        raw["wrong"] = wrong
        report.add(holds(what, wrong is None, wrong or said, "a test that passes, or what is there now"))
