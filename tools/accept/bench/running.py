"""`muster bench` and the null server while a row looks at them."""

import contextlib
import json
import subprocess

import jsonschema

from programs import BUILD, MUSTER, ROOT, scratch
from report import holds

NULL_SERVER = BUILD / "bin" / "muster-null-server"
LATE = 22  # the exit code of a run in which the generator was late, and of a self-test that missed something


def bench(*words, timeout_s=900):
    """`muster bench WORDS`: its exit code and what it printed."""
    done = subprocess.run([str(MUSTER), "bench", *map(str, words)], capture_output=True, text=True, timeout=timeout_s)
    return done.returncode, done.stdout, done.stderr


def measure(*words, timeout_s=900):
    """A measurement's result, which must be as its schema says, and the exit code."""
    out = scratch("bench-result.json")
    code, _, said = bench(*words, "-o", out, timeout_s=timeout_s)
    if code not in (0, LATE):
        raise RuntimeError(f"muster bench ended with {code}: {said[-400:]}")
    result = json.loads(out.read_text())
    jsonschema.validate(result, json.loads((ROOT / "docs" / "formats" / "bench-result.schema.json").read_text()))
    return result, code


def selftest(report, part, *words, timeout_s=900):
    """Adds the checks of a part of `muster bench selftest --full` to the report; gives them too."""
    code, printed, said = bench("selftest", part, "--full", "--json", *words, timeout_s=timeout_s)
    if code not in (0, LATE):
        raise RuntimeError(f"muster bench selftest {part} ended with {code}: {said[-400:]}")
    checks = json.loads(printed)["checks"]
    report.raw[f"selftest {part}"] = checks
    for check in checks:
        report.add(holds(check["what"], check["met"], check["measured"], check["required"]))
    return checks


@contextlib.contextmanager
def null_server(*flags):
    """A null server; its URL."""
    process = subprocess.Popen([str(NULL_SERVER), *map(str, flags)], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait(timeout=30)


def percentile(values, share):
    """The value of rank ceil(share n)."""
    values = sorted(values)
    rank = -(-len(values) * round(share * 1000) // 1000)
    return values[max(rank, 1) - 1]
