"""Document 1's file: on one to eight stand-in GPUs whose readings libfakenvml plays, and with the real decoder on two CPU devices."""

import json

from bench.sweeps import GPU_KEYS, TINY, Sweep, stand_in_devices
from generate.reference import SMOLLM2
from programs import ROOT
from report import holds

TITLE = "document 1's file: 1, 2, 4 and 8 stand-in GPUs in one table, and 2xcpu with the real SmolLM2"
IS_TIMED = False

EXAMPLE = (ROOT / "examples" / "bench" / "multigpu.yaml").read_text()
COUNTS = (1, 4, 2, 8)


def file_for(count):
    """The example with other GPUs: each has its limit."""
    ids = list(range(count))
    limits = ", ".join(f'{index}: "20GB"' for index in ids)
    return ["multigpu.yaml", f"backend.model={TINY}", f"backend.device_ids={ids}", f"backend.max_memory={{{limits}}}",
            "scenario.rate=5", "reporter.output_file=x.csv"]


def measure_gpus(report):
    sweep = Sweep("bench-run-gpus")
    for name in ("multigpu.yaml", "prompts.jsonl"):
        sweep.write(name, (ROOT / "examples" / "bench" / name).read_text())
    sweep.write("gpus.json", json.dumps({"fake_nvml": 1, "gpus": [{"model": "H200", "count": 8, "load": 0.5}]}))
    env = dict(stand_in_devices(), FAKENVML_SCENARIO=str(sweep.folder / "gpus.json"))
    seen = []
    for count in COUNTS:
        code, _, said = sweep.run(*file_for(count), env=env)
        report.add(holds(f"{count} GPUs: it ran", code in (0, 22), f"exit code {code} {said[-300:] if code not in (0, 22) else ''}"))
        seen.append(sweep.columns())
    moved = [(a, b) for a, b in zip(seen, seen[1:]) if b[:len(a)] != a]
    report.add(holds("no column ever moved", not moved, f"{[len(columns) for columns in seen]} columns"))
    differences = sweep.differences()
    report.add(holds("the table is equal to the points' files", not differences, f"{len(differences)} differences {differences[:3]}"))
    rows = {len(row["config_device_ids"].split(",")): row for row in sweep.rows()}
    absent = [f"{count}: {key} of {index}" for count, row in rows.items() for index in range(8) for key in GPU_KEYS
              if bool(row.get(f"gpu_stats_gpu_{index}_{key}")) != (index < count)]
    report.add(holds("each GPU of a point has its readings, and no other", not absent and len(rows) == 4, f"{absent[:3] or 'yes'}"))
    # A busy machine may miss an edge of a counter; what was integrated says so.
    methods = [row["energy_method"] + (f" ({row['energy_counter_missing_reason']})" if row["energy_counter_missing_reason"] else "")
               for row in rows.values()]
    told = all((row["energy_method"] == "counter") == (not row["energy_counter_missing_reason"]) for row in rows.values())
    report.add(holds("joules of every point, by the counter or with the reason why not",
                     told and all(float(row["energy_joules"]) > 0 for row in rows.values()),
                     [f"{row['energy_joules']} by {method}" for row, method in zip(rows.values(), methods)]))
    report.raw["rows"] = sweep.rows()


def measure_decoder(report):
    sweep = Sweep("bench-run-decoder")
    sweep.write("prompts.jsonl", (ROOT / "examples" / "bench" / "prompts.jsonl").read_text())
    sweep.write("b.yaml", f"backend: {{type: pytorch, model: {SMOLLM2}, device_ids: 2xcpu, task: text-generation}}\n"
                          "scenario:\n  dataset_name: prompts.jsonl\n  num_samples: 10\n  reasoning: false\n"
                          "  input_shapes: {batch_size: [1, 4]}\n  generate_kwargs: {max_new_tokens: 24, min_new_tokens: 24}\n"
                          "reporter: {type: csv, output_file: x.csv}\n")
    code, printed, said = sweep.run("b.yaml")
    report.raw["decoder"] = printed or said
    report.add(holds("the real SmolLM2 on 2xcpu", code in (0, 22), printed.splitlines()[0] if printed else said[-300:]))
    tokens = [result["run"]["summary"]["total_completion_tokens"] for result in sweep.results()]
    report.add(holds("every reply has its 24 tokens", tokens == [240, 240], tokens))
    report.add(holds("the table is equal to the points' files", not sweep.differences(), "yes"))


def skip_reason():
    return None if SMOLLM2.exists() else "there is no SmolLM2 in .deps/models"


def measure(report, arguments):
    measure_gpus(report)
    measure_decoder(report)
