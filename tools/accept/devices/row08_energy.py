"""Energy of short windows against the true integral of the power, and RAPL's counters."""

import json
import pathlib
import subprocess
import tempfile

from devices.rapl_windows import measure_rapl
from programs import BUILD, TESTS
from report import at_least, at_most, holds, skipped

TITLE = "Energy of 1,000 one-second windows of any phase; resets and missing counters; RAPL's turns"
IS_TIMED = False

WINDOWS, PERCENT = 1000, 0.5


def measure(report, _arguments):
    program = next((folder / "bin" / "telemetry_test" for folder in (TESTS / "sanitized", BUILD)
                    if (folder / "bin" / "telemetry_test").exists()), None)
    if program is None:
        report.add(skipped("windows on the sensor model", "telemetry_test is not built: ./test builds it"))
    else:
        show_windows(report, program)
    measure_rapl(report)


def show_windows(report, program):
    with tempfile.TemporaryDirectory() as folder:
        outcome = pathlib.Path(folder) / "outcome.json"
        subprocess.run([program, "--gtest_filter=EnergyPhases.*:EnergyWindow.*", f"--gtest_output=json:{outcome}"],
                       stdout=subprocess.DEVNULL)
        tests = {test["name"]: test for suite in json.loads(outcome.read_text())["testsuites"] for test in suite["testsuite"]}
    report.raw["tests"] = tests
    windows = tests["AThousandWindowsAreWithinHalfAPercent"]
    report.add(at_least("windows of a second, begun at any moment", int(windows.get("windows", 0)), WINDOWS, 0))
    report.add(at_most("worst of them against the true integral", float(windows.get("worst_percent", "inf")), PERCENT, 3, " %"))
    print(f"  note  a plain difference of two readings is wrong by up to {float(windows.get('plain_worst_percent', 'nan')):.1f} %")
    failed = [name for name, test in tests.items() if "failures" in test]
    report.add(holds("a reset has no total and says so; a missing counter is integrated and says so; never a silent 0",
                     not failed, f"{len(tests) - len(failed)} of {len(tests)} tests" + (f"; failed: {failed}" if failed else "")))
