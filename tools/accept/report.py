"""What a row shows: checks with the requirement, the measured value and the verdict, and one raw file."""

import dataclasses
import datetime
import json
import pathlib

PASS, MISS, SKIP = "pass", "MISS", "skip"


@dataclasses.dataclass
class Check:
    what: str         # "bf16 cosine, the worst of 1,000 texts"
    requirement: str  # ">= 0.999"
    measured: str     # "0.99971"
    verdict: str      # PASS, MISS, or SKIP with the reason in `measured`


def at_least(what, value, limit, digits=2, unit=""):
    return Check(what, f">= {limit}{unit}", f"{value:.{digits}f}{unit}", PASS if value >= limit else MISS)


def at_most(what, value, limit, digits=2, unit=""):
    return Check(what, f"<= {limit}{unit}", f"{value:.{digits}g}{unit}" if digits == 1 else
                 f"{value:.{digits}f}{unit}", PASS if value <= limit else MISS)


def holds(what, is_so, measured, requirement="yes"):
    return Check(what, requirement, measured, PASS if is_so else MISS)


def skipped(what, reason):
    return Check(what, "-", reason, SKIP)


class RowReport:
    """The outcome of one row; `raw` is whatever makes the figures checkable, as JSON."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.checks = []
        self.raw = {}

    def add(self, check):
        self.checks.append(check)
        self.show(check)

    def show(self, check):
        print(f"  {check.verdict:<4}  {check.what}: {check.measured}   (must be {check.requirement})"
              if check.verdict != SKIP else f"  {check.verdict:<4}  {check.what}: {check.measured}", flush=True)

    def missed(self):
        return any(check.verdict == MISS for check in self.checks) or not self.checks

    def passed(self):
        """Something was measured and nothing missed: a row that was skipped as a whole has shown nothing."""
        return not self.missed() and any(check.verdict == PASS for check in self.checks)

    def write(self, folder, machine):
        """Writes the raw file and returns its path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        content = {
            "row": self.name,
            "title": self.title,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "machine": machine,
            "checks": [dataclasses.asdict(check) for check in self.checks],
            "raw": self.raw,
        }
        # Where the clone lies is nobody's business, and the same file is written on every machine.
        text = json.dumps(content, indent=1, ensure_ascii=False).replace(f"{pathlib.Path.cwd()}/", "")
        path.write_text(text + "\n")
        return path


def short(path):
    """`path` below the current folder, else as it is."""
    path = pathlib.Path(path)
    return path.relative_to(pathlib.Path.cwd()) if path.is_relative_to(pathlib.Path.cwd()) else path
