"""A file of prompts while workers, and muster itself, are interrupted and killed: the same lines as of an undisturbed run."""

import json
import random
import signal
import subprocess
import time

from generate import replies
from generate.replies import DECODER, OPENINGS, skip_reason
from programs import MUSTER, children_of, kill, remove_output, scratch, seconds_until_gone
from report import at_most, holds

TITLE = "generate --prompts: workers killed, Ctrl-C and kill -9 of muster with --resume; each reply as by itself"
IS_TIMED = False

PROMPTS, TOKENS, POINTS, ALONE = 96, 48, 6, 5
SAMPLING = ("--temperature", "0.7", "--top-p", "0.95", "--seed", "7")
ORPHAN_S_MAX = 1.0


def command(source, out, *options, devices="2xcpu"):
    return [str(MUSTER), "generate", str(DECODER), "--prompts", str(source), "-o", str(out), "--raw", "--max-tokens", str(TOKENS),
            "--devices", devices, "--precision", "own", *SAMPLING, *options]


def run(source, out, *options, **where):
    """The report of a run to its end."""
    done = subprocess.run(command(source, out, "--json", "--quiet", *options, **where), capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        raise RuntimeError(f"muster generate ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def write_prompts(path):
    """Records with ids and texts of other lengths."""
    lines = [json.dumps({"id": f"p{i}", "text": f"{OPENINGS[i % len(OPENINGS)]} {'and so on ' * (i % 7)}".strip()}) for i in range(PROMPTS)]
    path.write_text("\n".join(lines) + "\n")


def start(source, out, *options):
    return subprocess.Popen(command(source, out, "--quiet", *options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def workers_killed(report, source, out, whole, wall_s, generator):
    """One after the other, at random moments."""
    remove_output(out)
    process, kills = start(source, out), 0
    for _ in range(POINTS):
        time.sleep(generator.uniform(0.1, 0.3) * wall_s)
        workers = children_of(process.pid)
        kills += bool(workers) and process.poll() is None and kill(generator.choice(workers))
    code = process.wait(timeout=1200)
    same = code == 0 and out.read_text() == whole
    report.add(holds(f"{kills} workers killed, two devices", same and kills > 0, f"exit code {code}, {'the same' if same else 'other'} lines", "the same lines"))


def interrupted(report, source, out, whole, wall_s, generator):
    wrong, late, kept, points = [], [], 0, []
    for index in range(POINTS):
        number = signal.SIGINT if index % 2 == 0 else signal.SIGKILL
        remove_output(out)
        process = start(source, out)
        workers, end = set(), time.monotonic() + generator.uniform(0.2, 0.8) * wall_s
        while time.monotonic() < end and process.poll() is None:
            workers |= set(children_of(process.pid))
            time.sleep(0.02)
        met = process.poll() is None and kill(process.pid, number)
        code, said = process.wait(timeout=60), process.stderr.read()
        late.append(seconds_until_gone(workers, limit_s=10) or 0.0)
        if not met or code != (130 if number == signal.SIGINT else -signal.SIGKILL):
            wrong.append(f"point {index}: exit code {code} after {signal.Signals(number).name}")
        if number == signal.SIGINT and "go on with: " not in said and "nothing of this run is kept" not in said:
            wrong.append(f"point {index}: said {said[-200:]!r}")
        again = run(source, out, "--resume", devices="1xcpu" if index % 3 == 0 else "2xcpu")
        kept += again["resumed_count"]
        points.append({"signal": signal.Signals(number).name, "resumed": again["resumed_count"], "computed": again["reply_count"]})
        if out.read_text() != whole:
            wrong.append(f"point {index}: other lines")
        if again["resumed_count"] + again["reply_count"] != PROMPTS:
            wrong.append(f"point {index}: {again['resumed_count']} found, {again['reply_count']} computed")
    report.raw["points"] = points
    report.add(holds(f"{POINTS} times interrupted or killed, then --resume, on one device or two", not wrong and kept > 0,
                     "; ".join(wrong) or f"the same lines; {kept} replies were not computed again", "the same lines"))
    report.add(at_most("the last worker outlived muster by", max(late), ORPHAN_S_MAX, unit=" s"))


def measure(report, arguments):
    generator = random.Random(arguments.seed)
    report.raw["seed"] = arguments.seed
    source, out = scratch("prompts.jsonl"), scratch("replies.jsonl")
    write_prompts(source)
    remove_output(out)
    begin = time.monotonic()
    made = run(source, out)
    wall_s = time.monotonic() - begin
    whole = out.read_text()
    lines = [json.loads(line) for line in whole.splitlines()]
    report.raw["undisturbed"] = made
    report.add(holds("lines in the order of the prompts", [line["index"] for line in lines] == list(range(PROMPTS)), f"{len(lines)}", f"{PROMPTS}"))
    report.add(holds("tokens a second, start included", True, f"{made['completion_tokens'] / made['total_seconds']:.0f}", "stated"))
    asked = [json.loads(line)["text"] for line in source.read_text().splitlines()]
    different = []
    for index in generator.sample(range(PROMPTS), ALONE):
        alone = replies.generate(asked[index], "--max-tokens", TOKENS, "--precision", "own", *SAMPLING[:4], "--seed", lines[index]["seed"])
        if alone["text"] != lines[index]["text"]:
            different.append(index)
    report.add(holds(f"of {ALONE} asked by themselves with their seed, other texts", not different, f"{len(different)}", "0"))
    workers_killed(report, source, out, whole, wall_s, generator)
    interrupted(report, source, out, whole, wall_s, generator)
