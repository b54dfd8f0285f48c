"""Device maps against accelerate: the same where its answer is whole, whole everywhere."""

import json
import subprocess
import sys

import module_maps
from programs import PEER_PYTHON, ROOT, scratch
from report import holds

sys.path.insert(0, str(ROOT / "tools" / "fixtures"))

import accelerate_random

TITLE = "Device maps against accelerate 1.15.0, on transformers models and on 100,000 random module trees"
IS_TIMED = False

RECORDED = ROOT / "src" / "planner" / "testdata" / "accelerate_placements.json"
ORACLE = ROOT / "tools" / "fixtures" / "accelerate_cases.py"
RECORDED_WHOLE = 174  # of the 300
PER_FAMILY = 60
ASKED_RANDOM = 4000
TREES = 100_000
CHUNK = 10_000


def add_comparison(report, name, found, whole_min):
    report.raw[name] = found
    what = f"{name}: {found['cases']:,} cases, accelerate stops in {found['stops']}, leaves tensors out in {found['incomplete']}"
    report.add(holds(f"{what}; its other maps", found["whole"] >= whole_min and not found["differ"],
                     f"{found['whole']:,} compared, {len(found['differ'])} differ", f"at least {whole_min:,}, 0 differ"))
    faults = len(found["uncovered"]) + len(found["split_ties"]) + found["cases"] - found["answers"]
    report.add(holds(f"{name}: ours without an answer, a tensor or a tie whole", faults == 0, str(faults), "0"))


def asked(seed, *options):
    """Cases that accelerate answers now: their file."""
    path = scratch("accelerate-cases.json")
    subprocess.run([PEER_PYTHON, "-B", ORACLE, path, "--seed", str(seed), *map(str, options)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def faults_of_chunk(seed):
    """Of CHUNK random trees: how many have no whole map, and whether the answers are twice the same bytes."""
    cases = accelerate_random.random_cases(seed, CHUNK)
    path = scratch("random-cases.json")
    path.write_text(json.dumps({"cases": cases}))
    text = module_maps.muster_answers(path)
    answers = json.loads(text)
    whole = sum(module_maps.is_covered(case, answer["device_map"]) and
                module_maps.has_whole_ties(case, answer["device_map"]) for case, answer in zip(cases, answers))
    return CHUNK - whole, text == module_maps.muster_answers(path)


def measure(report, arguments):
    report.raw["seed"] = arguments.seed
    found = module_maps.compare(RECORDED)
    add_comparison(report, "recorded", found, RECORDED_WHOLE)

    path = asked(arguments.seed, "--per-family", PER_FAMILY)
    report.raw["source"] = json.loads(path.read_text())["source"]
    found = module_maps.compare(path)
    add_comparison(report, "tiny transformers models", found, found["cases"] * 9 // 10)

    found = module_maps.compare(asked(arguments.seed, "--random", ASKED_RANDOM))
    add_comparison(report, "random modules", found, ASKED_RANDOM // 2)

    outcomes = [faults_of_chunk(arguments.seed + index) for index in range(TREES // CHUNK)]
    report.raw["random_trees"] = {"count": TREES, "seeds": [arguments.seed, arguments.seed + len(outcomes) - 1]}
    report.add(holds(f"{TREES:,} random trees without a whole map", sum(count for count, _ in outcomes) == 0,
                     str(sum(count for count, _ in outcomes)), "0"))
    report.add(holds("the same bytes when asked again", all(same for _, same in outcomes),
                     f"{sum(same for _, same in outcomes)} of {len(outcomes)} lists", "all"))
