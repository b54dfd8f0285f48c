"""Document 1's file: on one to eight stand-in GPUs whose readings libfakenvml plays, and with the real decoder on two CPU devices."""

import json

from bench.running import null_server
from bench.sweeps import GPU_KEYS, TINY, Sweep, stand_in_devices
from generate.reference import SMOLLM2
from programs import ROOT
from report import holds

TITLE = "document 1's file: 1, 2, 4 and 8 stand-in GPUs in one table, and 2xcpu with the real SmolLM2"
IS_TIMED = False

EXAMPLE = (ROOT / "examples" / "bench" / "multigpu.yaml").read_text()
COUNTS = (1, 4, 2, 8)
# What the file says, as each point has it.
KEYS = {"name": "multigpu", "backend": "muster", "device_map": "auto", "torch_dtype": "auto", "model": str(TINY), "dataset_name": "prompts.jsonl",
        "text_column_name": "text", "num_samples": "10", "truncation": "true", "reasoning": "false", "batch_size": "1",
        "metrics_enabled": "true", "project_name": "multigpu", "country_iso_code": "USA"}
# And what the command that measures it has of them; its devices are checked by their count.
WORDS = {"--precision=auto", "--auto-truncate", "--requests=10", "--batch=1", "--input=prompts.jsonl", "--field=text", "--rate=5"}


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
    unlike = [f"{key}: {row.get(f'config_{key}')!r}" for row in rows.values() for key, text in KEYS.items() if row.get(f"config_{key}") != text]
    unlike += [f"{count}: {row['config_max_memory']!r}" for count, row in rows.items() if row["config_max_memory"].count("20GB") != count]
    report.add(holds("every key of the file stands in each point as the file has it", not unlike and len(rows) == 4, f"{unlike[:3] or 'yes'}"))
    commands = [result["command"] for result in sweep.results()]
    without = [sorted(WORDS.difference(words)) for words in commands if not WORDS <= set(words)]
    devices = sorted(word.count("cuda:") for words in commands for word in words if word.startswith("--devices="))
    report.add(holds("and each was measured by a command that has them", not without and devices == sorted(COUNTS),
                     f"without {without[:2] or 'none'}, of {devices} devices"))
    asked = [(row["summary_total_prompts"], row["summary_successful_prompts"]) for row in rows.values()]
    report.add(holds("all ten prompts were sent and answered", asked == [("10", "10")] * 4, asked))
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


def measure_server():
    """The other type of document 1, vllm: a server that runs already."""
    with null_server() as url:
        sweep = Sweep("bench-run-vllm")
        sweep.write("b.yaml", f"backend: {{type: vllm, endpoint: \"{url}/v1\", model: \"null\", task: text-generation}}\n"
                              "scenario: {num_samples: 6, generate_kwargs: {max_new_tokens: 4}}\nreporter: {output_file: x.csv}\n")
        code, _, said = sweep.run("b.yaml")
    seen = [(result["run"]["config"]["backend"], result["run"]["summary"]["total_completion_tokens"]) for result in sweep.results()]
    return holds("type: vllm is any server that speaks OpenAI's API", code in (0, 22) and seen == [("openai", 24)],
                 f"exit code {code}, {seen} {said[-200:] if code not in (0, 22) else ''}", "('openai', 24 tokens)")


def skip_reason():
    return None if SMOLLM2.exists() else "there is no SmolLM2 in .deps/models"


def measure(report, arguments):
    measure_gpus(report)
    report.add(measure_server())
    measure_decoder(report)
