"""Device maps of module trees: what covers what, and `muster plan --modules` beside accelerate."""

import json
import subprocess

from programs import MUSTER


def muster_answers(path, timeout_s=600):
    """What `muster plan --modules` prints for the cases in `path`: text."""
    done = subprocess.run([MUSTER, "plan", "--modules", path, "--compat", "accelerate", "--json"], capture_output=True,
                          text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise RuntimeError(f"muster plan ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def tensor_names(tree, prefix=""):
    for kind in ("params", "buffers"):
        for name, *_ in tree[kind]:
            yield prefix + name
    for name, child in tree["children"]:
        yield from tensor_names(child, f"{prefix}{name}.")


def place_of(device_map, name):
    """Where `name` goes, by the longest key above it; None when no key covers it."""
    while name not in device_map:
        if not name:
            return None
        name = name.rpartition(".")[0]
    return device_map[name]


def is_covered(case, device_map):
    return all(place_of(device_map, name) is not None for name in tensor_names(case["tree"]))


def has_whole_ties(case, device_map):
    return all(len({place_of(device_map, name) for name in group}) == 1 for group in case["ties"])


def compare(path):
    """The cases in `path` that accelerate has answered, beside muster's answers: counts."""
    cases = json.loads(path.read_text())["cases"]
    answers = json.loads(muster_answers(path))
    found = {"cases": len(cases), "answers": len(answers), "stops": 0, "incomplete": 0, "whole": 0, "differ": [],
             "uncovered": [], "split_ties": []}
    for index, (case, answer) in enumerate(zip(cases, answers)):
        ours = answer["device_map"]
        if not is_covered(case, ours):
            found["uncovered"].append(index)
        if not has_whole_ties(case, ours):
            found["split_ties"].append(index)
        if "error" in case:
            found["stops"] += 1
            continue
        theirs = dict(case["device_map"])
        if not is_covered(case, theirs) or not has_whole_ties(case, theirs):
            found["incomplete"] += 1
            continue
        found["whole"] += 1
        if ours != theirs or any(answer[key] != case[key] for key in ("balanced_memory", "buffer_warning")):
            found["differ"].append(index)
    return found
