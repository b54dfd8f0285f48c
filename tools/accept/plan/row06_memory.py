"""Memory: formulas against enumerations and published failures; encoders against real workers."""

import json
import os
import subprocess

from programs import MODEL, ROOT, TESTS, embed, scratch
from report import at_most, holds

TITLE = "Memory: cache and activations against enumerations, published failures, encoders against their workers"
IS_TIMED = False

SUITES = {
    "cache formulas against an enumeration of tokens and heads": "KvCache.*",
    "activation formulas against a machine that counts every tensor": "BlockPeak.*:HeadPeak.*:EmbeddingPeak.*",
    "training formulas against the papers": "TrainingMemory.*",
    "weights, shares, stages, bad input": "MemoryWeights.*:StageMemory.*:ExplainMemory.*:MemoryEncoder.*",
    "published failures of other estimators": "PublishedFailures.*",
}
ERROR_PERCENT = 1.0
TEXT_COUNT = 4000
WORDS = 14  # tokens of their own, and two special ones: 16 a text, 64 texts a pass


def run_tests(report, tree, program, pattern, **environment):
    """The outcome of the tests that match: [(name, result, failed)], and what they printed."""
    subprocess.run(["ninja", "-C", tree, program], check=True, stdout=subprocess.DEVNULL)
    results = scratch(f"{program}.json")
    done = subprocess.run([tree / "bin" / program, f"--gtest_filter={pattern}", f"--gtest_output=json:{results}"],
                          capture_output=True, text=True, env=dict(os.environ, **environment))
    suites = json.loads(results.read_text())["testsuites"]
    tests = [(test["name"], test["result"], bool(test.get("failures"))) for suite in suites for test in suite["testsuite"]]
    report.raw.setdefault("tests", {})[pattern] = tests
    return tests, done.stdout


def show_formulas(report):
    for what, pattern in SUITES.items():
        tests, _ = run_tests(report, TESTS / "sanitized", "planner_test", pattern)
        failed = [name for name, _, has_failed in tests if has_failed]
        report.add(holds(what, bool(tests) and not failed, f"{len(tests)} tests, {len(failed)} failed {' '.join(failed)}",
                         "all pass"))


def show_workers(report):
    """Prints predicted and measured bytes; returns the rows: {(model, precision): {what: (predicted, measured)}}."""
    tests, output = run_tests(report, TESTS / "plain", "worker_memory_test", "*", MUSTER_MINILM=str(MODEL))
    table = {}
    for line in output.splitlines():
        if line.startswith("memory "):
            _, model, precision, what, predicted, measured, _ = line.split()
            table.setdefault((model, precision), {})[what] = (int(predicted), int(measured))
    report.raw["workers"] = [[*key, what, *pair] for key, rows in table.items() for what, pair in rows.items()]
    for (model, precision), rows in table.items():
        print(f"  note  {model} {precision}: bytes predicted = measured by the worker")
        for what, (predicted, measured) in rows.items():
            print(f"          {what:>8}  {predicted:>12,} {measured:>12,}  {100 * (predicted / measured - 1):+.3f} %")
    errors = [abs(predicted / measured - 1) * 100 for rows in table.values() for predicted, measured in rows.values()]
    report.add(at_most(f"encoders: largest error of {len(errors)} figures of {len(table)} workers, one lane",
                       max(errors, default=100.0), ERROR_PERCENT, digits=3, unit=" %"))
    failed = [name for name, _, has_failed in tests if has_failed]
    skipped = [name for name, result, _ in tests if result == "SKIPPED"]
    report.add(holds("workers of one and two lanes", bool(tests) and not failed,
                     f"{len(tests)} tests, {len(failed)} failed {' '.join(failed)}, {len(skipped)} skipped", "all pass"))
    return table


def show_command(report, table):
    """What `muster embed --json` says of its worker, against the same prediction."""
    source = scratch("same_length.txt")
    source.write_text(("the " * WORDS + "\n") * TEXT_COUNT)
    for precision in ("fp32", "bf16"):
        rows = table.get(("all-MiniLM-L6-v2", precision))
        if rows is None:
            continue
        result = embed(source, scratch("memory.npy"), "--devices", "1xcpu", "--cores-per-device", "1",
                       "--precision", precision)
        memory = result["devices"][0]["memory"]
        report.raw[f"embed {precision}"] = memory
        predicted = rows["weights"][0] + rows["64x16"][0]
        measured = memory["weights_bytes"] + memory["activation_peak_bytes"]
        report.add(at_most(f"muster embed --json, MiniLM {precision}: {measured:,} bytes, {predicted:,} predicted",
                           abs(predicted / measured - 1) * 100, ERROR_PERCENT, digits=3, unit=" %"))


def measure(report, arguments):
    if not (TESTS / "sanitized" / "build.ninja").exists() or not (TESTS / "plain" / "build.ninja").exists():
        report.add(holds("the tests are built", False, "run ./test first"))
        return
    show_formulas(report)
    show_command(report, show_workers(report))
