"""Document 3's benchmark from one command: batch sizes by precisions on the real MiniLM."""

from bench.sweeps import Sweep
from programs import MODEL
from report import holds

TITLE = "document 3's benchmark: batch 1 to 256 x fp32, bf16, int8 on the real MiniLM, its table from one command"
IS_TIMED = False

PRECISIONS = {"float32": "fp32", "bfloat16": "bf16", "int8": "int8"}  # as the file names them, and as the record does
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256]
FIGURES = ("min_latency_seconds", "avg_latency_seconds", "max_latency_seconds", "throughput_prompts_per_second")


def skip_reason():
    return None if MODEL.exists() else "there is no MiniLM in .deps/models"


def measure(report, arguments):
    sweep = Sweep("bench-run-embed")
    sweep.write("b.yaml", f"backend: {{model: {MODEL}, device_ids: cpu, torch_dtype: [{', '.join(PRECISIONS)}]}}\n"
                          f"scenario: {{num_samples: 512, input_shapes: {{batch_size: {BATCHES}, sequence_length: 32}}}}\n"
                          "reporter: {output_file: x.csv}\n")
    code, printed, said = sweep.run("b.yaml")
    report.raw["table"] = printed
    report.add(holds("it ran", code in (0, 22), printed.splitlines()[0] if printed else said[-300:]))
    summaries = {(r["run"]["config"]["torch_dtype"], r["run"]["config"]["batch_size"]): r["run"]["summary"] for r in sweep.results()}
    report.raw["summaries"] = {f"{dtype} {batch}": summary for (dtype, batch), summary in summaries.items()}
    absent = [(key, name) for key, summary in summaries.items() for name in FIGURES if summary[name] is None]
    points = len(PRECISIONS) * len(BATCHES)
    report.add(holds(f"min, mean, max and texts a second of all {points} points", len(summaries) == points and not absent,
                     f"{len(summaries)} points, absent: {absent[:3]}"))
    # 72 samples make a p95, 368 a p99: docs/decisions/023-bench-statistics.md.
    rows = [summaries[dtype, 1] for dtype in PRECISIONS.values() if (dtype, 1) in summaries]
    report.add(holds("p95 of the 512 requests of batch 1", all(row["p95_latency_seconds"] for row in rows), [row["p95_latency_seconds"] for row in rows]))
    report.add(holds("the table is equal to the points' files", not sweep.differences(), "yes"))
