"""What cannot be measured is refused in one sentence, and nothing is written; a server's nonsense is an error, and no point; a wall clock
that steps changes no figure."""

import pathlib
import subprocess

from bench.running import null_server
from bench.sweeps import TINY, Sweep
from programs import scratch
from report import holds, skipped

TITLE = "bad input of `bench run`: one sentence, nothing half-written; a clock that steps"
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
    "no YAML": ("backend: [\n", "b.yaml:3: no YAML"),
    "two documents": ("a: 1\n---\nb: 2\n", "more than one document"),
}

# Loaded before a program's libraries: its wall clock is an hour back in every second tenth of a second.
STEPPING_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {
  int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  struct timespec steady;
  if (result == 0 && clock == CLOCK_REALTIME && real(CLOCK_MONOTONIC, &steady) == 0 && steady.tv_nsec / 100000000 % 2 == 1) now->tv_sec -= 3600;
  return result;
}
"""
SERVICE_S, TEXTS, BATCHES = 0.02, 24, [1, 2, 4, 6, 8, 12]
TRIES = 3  # a busy machine may make every point of a sweep invalid


def measure_clock(report):
    """A sweep whose wall clock jumps by an hour ten times a second: its latencies, its rates and --resume know nothing of it."""
    library = scratch("stepping-clock.so")
    built = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-", "-ldl"], input=STEPPING_CLOCK, text=True, capture_output=True)
    if built.returncode != 0:
        report.add(skipped("a clock that steps", built.stderr.strip()[-300:]))
        return
    env = {"LD_PRELOAD": str(library)}
    with null_server("--law", "deterministic", "--mean", SERVICE_S) as url:
        for _ in range(TRIES):
            sweep = Sweep("bench-run-clock")
            sweep.write("b.yaml", f"backend: {{url: \"{url}\", model: \"null\", task: embed}}\n"
                                  f"scenario: {{num_samples: {TEXTS}, warm_up: none, trials: 2, cooldown: 100ms,\n"
                                  f"  input_shapes: {{batch_size: {BATCHES}}}}}\n"
                                  "reporter: {output_file: x.csv}\n")
            code, _, said = sweep.run("b.yaml", env=env)
            results = sweep.results()
            if any(result["run"]["valid"] for result in results):
                break
        files = {path: path.read_bytes() for path in sweep.files()}
        again, _, said_again = sweep.run("b.yaml", "--resume", env=env)
    begun = [trial["started_at"] for result in results for point in result["points"] for trial in point["trials"]]
    # Twelve trials of half a second at most, which begin within a minute where nothing moves the clock.
    report.raw["trials begun at, the clock stepping"] = begun
    report.add(holds("a clock that steps: it did", len(begun) == 2 * len(BATCHES) and max(begun) - min(begun) > 3000,
                     f"{len(begun)} trials, {max(begun, default=0) - min(begun, default=0):.0f} s apart", "about an hour apart"))
    latencies = [value / 1e9 for result in results for point in result["points"] for trial in point["trials"]
                 for value in trial["samples"]["latency_ns"]]
    lasted = [result["run"]["summary"]["total_duration_seconds"] for result in results]
    report.add(holds("a clock that steps: latencies and durations are those of the server",
                     code in (0, 22) and len(results) == len(BATCHES) and all(SERVICE_S <= one < 5 for one in latencies) and
                     all(0 < one < 60 for one in lasted),
                     f"exit code {code}, {min(latencies, default=0):.3f} to {max(latencies, default=0):.3f} s "
                     f"{said[-200:] if code not in (0, 22) else ''}"))
    kept = {path: path.read_bytes() for path in sweep.files()}
    valid = [path for path, result in zip(files, results) if result["run"]["valid"]]
    report.add(holds("a clock that steps: --resume finds every valid point, and the table is equal to the files",
                     again in (0, 22) and valid != [] and all(kept.get(path) == files[path] for path in valid) and not sweep.differences(),
                     f"exit code {again}, {len(valid)} of {len(files)} valid {said_again[-200:] if again not in (0, 22) else ''}"))


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
        shown = said.strip().replace(str(pathlib.Path.home()), "~")
        report.add(holds(what, is_well, f"{code}: {shown[-160:]}", "one sentence, nothing written"))
    with null_server("--nonsense") as url:
        sweep = Sweep("bench-run-bad")
        sweep.write("b.yaml", f"backend: {{url: \"{url}\", task: text-generation}}\nscenario: {{num_samples: 4}}\nreporter: {{output_file: x.csv}}\n")
        code, _, said = sweep.run("b.yaml")
        is_well = code == 6 and "no request was answered" in said and not sweep.files() and not sweep.table.exists()
        report.add(holds("a server that streams nonsense", is_well, f"{code}: {said.strip()[-160:]}", "an error, and no point"))
    measure_clock(report)
