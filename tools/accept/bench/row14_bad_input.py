"""What cannot be measured is refused in one sentence, and nothing is written; a server's nonsense is an error, and no point."""

from bench.running import null_server
from bench.sweeps import TINY, Sweep
from report import holds

TITLE = "bad input of `bench run`: one sentence, nothing half-written"
IS_TIMED = False

BACKEND = f"backend: {{model: {TINY}, device_ids: 1xcpu}}\n"
# What stands in the file, and a part of the sentence.
FILES = {
    "an unknown key": (BACKEND + "scenario: {num_sampels: 3}\n", "b.yaml:2: scenario.num_sampels is not known; did you mean scenario.num_samples?"),
    "a key of another program": (BACKEND.replace("1xcpu", "1xcpu, trust_remote_code: true"), "b.yaml:1: backend.trust_remote_code"),
    "a sweep of nothing": (BACKEND + "scenario: {input_shapes: {batch_size: []}}\n", "b.yaml:2: scenario.input_shapes.batch_size is an empty list"),
    "an impossible sweep": (BACKEND + "scenario: {num_samples: 4, input_shapes: {batch_size: [1, 64]}}\n", "wants 64 texts at once, and there are 4"),
    "more clients than requests": (BACKEND + "scenario: {num_samples: 4, clients: [1, 8]}\n", "b.yaml:2: scenario.clients asks for 8 requests at once, and there are 4"),
    "an empty data set": (BACKEND + "scenario: {dataset_name: empty.txt}\n", "b.yaml:2: scenario.dataset_name has no text: empty.txt"),
    "a data set that is not here": (BACKEND + "scenario: {dataset_name: AIEnergyScore/text_generation}\n", "no such file; data sets are files here"),
    "a wrong column of JSON lines": (BACKEND + "scenario: {dataset_name: texts.jsonl, text_column_name: prompt}\n", "prompt"),
    "a wrong column of a CSV": (BACKEND + "scenario: {dataset_name: texts.csv, text_column_name: prompt}\n", "prompt"),
    "more texts than there are": (BACKEND + "scenario: {dataset_name: texts.csv, text_column_name: body, num_samples: 9}\n", "asks for 9 texts, and texts.csv has 1"),
    "a precision that there is not": (BACKEND.replace("1xcpu", "1xcpu, torch_dtype: int4"), "backend.torch_dtype must be one of"),
    "a device that there is not": (BACKEND.replace("1xcpu", "[7]"), "backend.device_ids: 1 of 1 devices cannot be used"),
    "a model that there is not": (BACKEND.replace(str(TINY), "no/such"), "b.yaml:1: backend.model"),
    "a map that cuts the model": (BACKEND.replace("1xcpu", "2xcpu, device_map: balanced"), "cuts one model over 2 devices"),
    "a limit that is too small": (BACKEND.replace("1xcpu", "1xcpu, max_memory: {0: 1KB}"), "backend.max_memory: a whole copy of"),
    "two limits of one device": (BACKEND.replace("1xcpu", "1xcpu, max_memory: {0: 8GB, \"cpu:0\": 8GB}"), "backend.max_memory: cpu:0 has two limits"),
    "two rates in one text": (BACKEND + 'scenario: {rate: "1,2"}\n', "b.yaml:2: scenario.rate is one rate; a sweep of rates is a list"),
    "an objective that there is not": (BACKEND + 'scenario: {slo: "latency<1s"}\n', "b.yaml:2: scenario.slo: "),
    "a recording that nobody writes": (BACKEND + "metrics: {enabled: false, output_dir: r}\n", "b.yaml:2: metrics.output_dir counts with"),
    "no YAML": ("backend: [\n", "b.yaml:2: no YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "more than one document"),
}


def measure(report, arguments):
    for what, (text, part) in FILES.items():
        sweep = Sweep("bench-run-bad")
        sweep.write("empty.txt", "\n\n")
        sweep.write("texts.jsonl", '{"body": "a"}\n')
        sweep.write("texts.csv", "body,id\na,1\n")
        sweep.write("b.yaml", text + "reporter: {output_file: x.csv}\n" if "---" not in text else text)
        before = sorted(path.name for path in sweep.folder.iterdir())
        code, printed, said = sweep.run("b.yaml")
        sentences = [line for line in said.splitlines() if not line.startswith(("muster: devices: ", "muster: unavailable: "))]
        after = sorted(path.name for path in sweep.folder.iterdir())
        is_well = code in (2, 3, 7, 8) and len(sentences) == 1 and part in sentences[0] and not printed and after == before
        report.add(holds(what, is_well, f"{code}: {said.strip()[-160:]}", "one sentence, nothing written"))
    with null_server("--nonsense") as url:
        sweep = Sweep("bench-run-bad")
        sweep.write("b.yaml", f"backend: {{url: \"{url}\", task: text-generation}}\nscenario: {{num_samples: 4}}\nreporter: {{output_file: x.csv}}\n")
        code, _, said = sweep.run("b.yaml")
        is_well = code == 6 and "no request was answered" in said and not sweep.files() and not sweep.table.exists()
        report.add(holds("a server that streams nonsense", is_well, f"{code}: {said.strip()[-160:]}", "an error, and no point"))
