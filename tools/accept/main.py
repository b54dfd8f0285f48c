"""./accept [NAME[.ROW]]: runs the rows of a list and shows what they found. See ./accept --help."""

import argparse
import datetime
import importlib
import itertools
import pathlib
import shutil
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))

import machine
import programs
import run_interleaved
from report import MISS, Check, RowReport, short, skipped

LISTS = {"spine": "spine", "plan": "plan", "devices": "devices", "serve": "serve", "ground": "ground", "house": "house",
         "generate": "generate", "bench": "bench", "gpu-path": "gpu_path"}


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./accept", description="Shows that what was asked for is there.")
    parser.add_argument("what", nargs="?", default="spine", metavar="NAME[.ROW[,ROW]]",
                        help="a list (%s), or rows of it: spine.4, spine.6,7,8" % ", ".join(LISTS))
    parser.add_argument("--save", action="store_true", help="copy the raw files to benchmarks/results/")
    parser.add_argument("--long", action="store_true", help="the long form of rows that have one (fuzzing: 10 minutes each; generate.14: an hour)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of interleaved measurements (default 5)")
    parser.add_argument("--seed", type=int, default=None, help="of the rows that choose at random; printed")
    parser.add_argument("--anyway", action="store_true",
                        help="measure times on a busy machine too; the figures are marked and never saved")
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = int(time.time())
    return arguments


def rows_of(what):
    """The row modules named by `what`: [(number, module)]."""
    name, _, numbers = what.partition(".")
    if name not in LISTS:
        sys.exit(f"no such list: {name} (there is: {', '.join(LISTS)})")
    rows = importlib.import_module(LISTS[name]).ROWS
    wanted = [int(n) for n in numbers.split(",")] if numbers else sorted(rows)
    unknown = [n for n in wanted if n not in rows]
    if unknown:
        sys.exit(f"no such row: {name}.{unknown[0]} (there are 1 to {max(rows)})")
    return [(n, importlib.import_module(f"{LISTS[name]}.{rows[n]}")) for n in wanted]


def is_busy(report, arguments):
    """Whether a timed row must not run now; says so in the report."""
    share = run_interleaved.idle_share()
    report.raw["idle_share_before"] = share
    if share >= run_interleaved.IDLE_SHARE_MIN:
        return False
    if arguments.anyway:
        print(f"  note  the machine is busy (idle share {share:.2f}): the times below are indicative only")
        return False
    report.add(Check("a quiet machine to measure on", f"idle share >= {run_interleaved.IDLE_SHARE_MIN}", f"{share:.2f}", MISS))
    return True


def run_row(name, module, arguments):
    report = RowReport(name, module.TITLE)
    print(f"\n{name}  {module.TITLE}", flush=True)
    start = time.monotonic()
    try:
        reason = module.skip_reason() if hasattr(module, "skip_reason") else None
        if reason:
            report.add(skipped("this row", reason))
        elif not (module.IS_TIMED and is_busy(report, arguments)):
            with machine.watch_stolen(report.raw):
                module.measure(report, arguments)
    except Exception as error:  # a row that cannot be measured is a miss, and the next row still runs
        report.raw["traceback"] = traceback.format_exc()
        report.add(Check("it can be measured", "yes", f"{type(error).__name__}: {error}", MISS))
    report.raw["row_seconds"] = time.monotonic() - start
    return report


def new_result(name):
    """Where today's result of a row is kept: beside those that the day has already, never over one."""
    results = programs.ROOT / "benchmarks" / "results"
    results.mkdir(parents=True, exist_ok=True)
    first = f"{datetime.date.today().isoformat()}-{name}"
    names = itertools.chain([first], (f"{first}-{i}" for i in itertools.count(2)))
    return next(path for path in (results / f"{name}.json" for name in names) if not path.exists())


def main():
    arguments = parse_arguments()
    host = machine.fingerprint(programs.ROOT)
    print(f"{host['cpu']}, {host['cores']} cores, {' '.join(host['instruction_sets'])}, commit {host['commit']}")
    reports = []
    for number, module in rows_of(arguments.what):
        name = f"{arguments.what.partition('.')[0]}.{number}"
        report = run_row(name, module, arguments)
        raw = report.write(programs.RESULTS, host)
        print(f"        raw: {short(raw)}")
        if arguments.save and not arguments.anyway:
            print(f"        saved: {short(shutil.copy(raw, new_result(name)))}")
        reports.append(report)
    passed = [report for report in reports if report.passed()]
    missed = [report.name for report in reports if report.missed()]
    unmeasured = [report.name for report in reports if not report.passed() and not report.missed()]
    print(f"\n{len(passed)} of {len(reports)} rows pass" + (f"; missed: {' '.join(missed)}" if missed else "") +
          (f"; not measured: {' '.join(unmeasured)}" if unmeasured else ""))
    sys.exit(0 if len(passed) == len(reports) else 1)


if __name__ == "__main__":
    main()
