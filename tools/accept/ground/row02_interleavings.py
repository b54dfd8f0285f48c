"""Runs, kills, full disks, wrong flags and rivals in any order on one output."""

import concurrent.futures
import hashlib
import itertools
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from programs import MUSTER, ROOT, stand_in
from report import at_most, holds

TITLE = "Interleavings of runs, kills, full disks, wrong flags and rivals on one output"
IS_TIMED = False

COUNT, STEPS_MOST, LANES = 200, 6, 4
LIMIT_S = 240
TEXTS = 12_000
STEP_LIMIT_S = 60
WORKER = stand_in("muster-worker-faulty")  # its rows are a hash of the text: a mixture shows
FORMATS = ("npy", "safetensors", "jsonl")
# Slow runs last so long that rows become durable, which they do every second, before a kill.
SLOW_US_PER_TOKEN = 20
# 0: done; 2: refused by name; 6: another run has it; 8: the disk is full; 130: Ctrl-C, before a program can see it -2.
CODES = {0, 2, 6, 8, 130, -signal.SIGINT, -signal.SIGKILL}
SPARE_NAMES = ("", ".index.jsonl", ".run.json")


class World:
    """What all interleavings share: inputs, models, a place for torch, and what undisturbed runs write."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "torch" / "lib").mkdir(parents=True)
        (folder / "torch" / "lib" / "libtorch_cpu.so").touch()
        (folder / "torch" / "version.py").write_text("__version__ = '2.11.0+cpu'\n")
        self.model = shutil.copytree(ROOT / "tests/models/tiny", folder / "model")
        self.other_model = shutil.copytree(self.model, folder / "other")
        weights = bytearray((self.model / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (self.other_model / "model.safetensors").write_bytes(weights)
        self.references = {}
        for job, job_name in ((0, "a.jsonl"), (1, "b.jsonl")):
            lines = (json.dumps({"text": f"text {(i * 7919 + job) % 10_007} the {i % 13 + job}"}) for i in range(TEXTS))
            (folder / job_name).write_text("\n".join(lines) + "\n")

    def make_references(self):
        for job, form in itertools.product(("a.jsonl", "b.jsonl"), FORMATS):
            place = Place(self, self.folder / f"reference-{job[0]}-{form}", form)
            start = time.monotonic()
            code, said = place.finish(place.start(job))
            if code != 0:
                raise RuntimeError(f"an undisturbed run ended with {code}: {said}")
            self.seconds = time.monotonic() - start
            self.references[job, form] = {name: place.beside(name).read_bytes() for name in SPARE_NAMES}


class Place:
    """One folder with the inputs and one output in it."""

    def __init__(self, world, folder, form):
        self.world, self.folder, self.form = world, folder, form
        folder.mkdir()
        for name in ("a.jsonl", "b.jsonl"):
            shutil.copy(world.folder / name, folder / name)
        self.inputs = {name: digest(folder / name) for name in ("a.jsonl", "b.jsonl")}
        self.out = f"o.{form}"

    def beside(self, name):
        return self.folder / (self.out + name)

    def has_kept(self):
        """Whether a run left rows to go on with: journalled ones, or ones ahead of their turn."""
        journal, ahead = self.beside(".journal"), self.beside(".ahead")
        if not journal.exists():
            return False
        if any(int(count) > 0 for count in re.findall(rb'"records":(\d+)', journal.read_bytes())):
            return True
        head = ahead.read_bytes()[:56] if ahead.exists() else b""
        # A head of 56 bytes that tells the values of a row, and slots of 56 bytes and four for each: docs/formats/vectors.md.
        return len(head) == 56 and ahead.stat().st_size >= 56 + 56 + 4 * int.from_bytes(head[12:16], "little")

    def start(self, job, *flags, out=None, model=None, slow=False, file_size_max=None):
        """`muster embed`, running in the folder."""
        command = [MUSTER, "embed", model or self.world.model, job, "-o", out or self.out, "--devices", "1xcpu", "--precision", "fp32",
                   "--quiet", "--batch-tokens", "256", "--worker-program", WORKER, "--torch-root", self.world.folder / "torch",
                   "--cache-dir", self.world.folder / "cache", *flags]

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size_max, file_size_max))

        words = {"cpu:0": {"batch_us_per_token": SLOW_US_PER_TOKEN if slow else 0}}
        return subprocess.Popen([str(word) for word in command], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, errors="replace", env={**os.environ, "FAULTY_WORKER": json.dumps(words)},
                                preexec_fn=limit if file_size_max is not None else None)

    def finish(self, process):
        """Exit code and last words; a run that does not end is killed and shown as such."""
        try:
            said = process.communicate(timeout=STEP_LIMIT_S)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            return "does not end", process.communicate()[1]
        return process.returncode, said.strip()

    def finals(self):
        """Which job's file each final name holds; the bytes of neither are a fault."""
        found, faults = {}, []
        for name in SPARE_NAMES:
            path = self.beside(name)
            if not path.exists():
                continue
            content = path.read_bytes()
            jobs = {job for job, form in self.world.references
                    if form == self.form and self.world.references[job, form][name] == content}
            if not jobs:
                faults.append(f"{path.name} is what no undisturbed run writes ({len(content)} bytes)")
            found[name] = jobs
        return found, faults

    def search_code(self):
        return subprocess.run([MUSTER, "search", self.out, "the", "--devices", "1xcpu", "--worker-program", WORKER, "--torch-root",
                               self.world.folder / "torch", "--cache-dir", self.world.folder / "cache"], cwd=self.folder,
                              capture_output=True, timeout=STEP_LIMIT_S).returncode

    def faults(self, whole_job=None):
        """What is wrong in the folder now. `whole_job`: whose output must be there."""
        found, faults = self.finals()
        faults += [f"{name} has changed" for name, before in self.inputs.items() if digest(self.folder / name) != before]
        if whole_job:
            missing = [name or self.out for name in SPARE_NAMES if whole_job not in found.get(name, ())]
            faults += [f"{name} is not that of {whole_job} after exit code 0" for name in missing]
        elif len(found) == len(SPARE_NAMES) and not set.intersection(*found.values()) and self.search_code() == 0:
            faults.append("search answers from files that are not of one run")
        return faults


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Interleaving:
    """A few steps on one folder, chosen by a seed, each looked at."""

    def __init__(self, world, number, seed):
        self.random = random.Random(f"{seed}-{number}")
        self.place = Place(world, world.folder / f"run-{number}", self.random.choice(FORMATS))
        self.log, self.faults = [], []
        self.durable = 0  # times that a step left rows to go on with

    def moment(self, slow):
        """When something happens to a run: anywhere in its life, and a bit beyond."""
        longest = self.place.world.seconds * 1.3 + (TEXTS * 7 * SLOW_US_PER_TOKEN / 1e6 if slow else 0)
        return self.random.uniform(0, longest)

    def job_and_flags(self):
        job = self.random.choice(("a.jsonl", "a.jsonl", "a.jsonl", "b.jsonl"))
        return job, self.random.choice(((), (), ("--resume",), ("--resume",), ("--resume",), ("--restart",)))

    def look(self, what, codes, whole_job=None, said=()):
        self.durable += self.place.has_kept()
        self.log.append(f"{what}: {codes}")
        for code in codes:
            if code not in CODES:
                self.faults.append(f"{what}: exit code {code}: {list(said)}")
        self.faults += [f"{what}: {fault}" for fault in self.place.faults(whole_job)]

    def run(self):
        job, flags = self.job_and_flags()
        code, said = self.place.finish(self.place.start(job, *flags))
        self.look(f"run {job} {flags}", [code], job if code == 0 else None, [said])

    def end_by(self, number):
        job, flags = self.job_and_flags()
        slow = self.random.random() < 0.4
        process = self.place.start(job, *flags, slow=slow)
        try:
            process.wait(timeout=self.moment(slow))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        code, said = self.place.finish(process)
        self.look(f"{signal.Signals(number).name} {job} {flags}{' slow' if slow else ''}", [code], job if code == 0 else None, [said])

    def fill_disk(self):
        job, flags = self.job_and_flags()
        largest = max(len(content) for content in self.place.world.references[job, self.place.form].values())
        size = int(largest * self.random.choice((0.0005, 0.01, 0.3, 0.9, 1.0, 1.1)) * self.random.uniform(0.5, 1.05))
        code, said = self.place.finish(self.place.start(job, *flags, file_size_max=size))
        self.look(f"files of {size} bytes at most, {job} {flags}", [code], job if code == 0 else None, [said])

    def ask_wrongly(self):
        """What must be refused and change nothing."""
        place = self.place
        before = {path.name: digest(path) for path in place.folder.iterdir()}
        cases = [("the output is the input", ("a.jsonl",), {"out": "a.jsonl"}),
                 ("the output is an input by a link", ("a.jsonl", "b.jsonl"), {"out": "link.jsonl"}),
                 ("resume and restart", ("a.jsonl", "--resume", "--restart"), {}),
                 ("an index as output", ("a.jsonl",), {"out": place.out + ".index.jsonl"})]
        if any(name.startswith(place.out + ".") or name == place.out for name in before):
            # A run that was killed before it kept anything may be begun by another model: nothing is lost.
            if place.has_kept() or place.beside(".run.json").exists():
                cases += [("another model", ("a.jsonl", "--resume"), {"model": place.world.other_model}),
                          ("another setting", ("a.jsonl", "--resume", "--max-length", "9"), {})]
        what, words, options = self.random.choice(cases)
        link = place.folder / "link.jsonl"
        link.symlink_to("b.jsonl")
        code, said = place.finish(place.start(*words, **options))
        link.unlink()
        self.look(f"refused: {what}", [code], None, [said])
        if code != 2:
            self.faults.append(f"{what}: exit code {code} in place of 2: {said}")
        after = {path.name: digest(path) for path in place.folder.iterdir()}
        left = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        left -= {place.out + ".lock"}  # one that a killed run has left goes with the next
        if left:
            self.faults.append(f"{what}: refused, and has changed {sorted(left)}")

    def rivals(self):
        jobs = [self.job_and_flags() for _ in range(2)]
        processes = [self.place.start(job, *flags) for job, flags in jobs]
        ends = [self.place.finish(process) for process in processes]
        codes = [code for code, _ in ends]
        done = [job for (job, _), code in zip(jobs, codes) if code == 0]
        self.look(f"two at once {jobs}", codes, done[0] if len(set(done)) == 1 and len(done) == 1 else None, [said for _, said in ends])

    def all_steps(self):
        steps = [self.run, self.fill_disk, self.fill_disk, self.ask_wrongly, self.rivals,
                 *[lambda: self.end_by(signal.SIGKILL)] * 3, *[lambda: self.end_by(signal.SIGINT)] * 3]
        for _ in range(self.random.randint(2, STEPS_MOST)):
            self.random.choice(steps)()
        flags = ("--resume",)
        code, said = self.place.finish(self.place.start("a.jsonl", *flags))
        if code == 2:  # what is there is of the other input, whole or not
            flags = ("--restart",)
            code, said = self.place.finish(self.place.start("a.jsonl", *flags))
        self.look(f"the end {flags}", [code], "a.jsonl", [said])
        expected = {"a.jsonl", "b.jsonl", *(self.place.out + name for name in SPARE_NAMES)}
        left = {path.name for path in self.place.folder.iterdir()} - expected
        if left:
            self.faults.append(f"left behind: {sorted(left)}")
        shutil.rmtree(self.place.folder)
        return self


def skip_reason():
    return None if WORKER.exists() else "muster-worker-faulty is not built (./test builds it)"


def measure(report, arguments, count=COUNT):
    print(f"  seed  {arguments.seed}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-interleavings-"))
    start = time.monotonic()
    try:
        world = World(folder)
        world.make_references()
        shown, done = threading.Lock(), []

        def one(number):
            found = Interleaving(world, number, arguments.seed).all_steps()
            with shown:
                done.append({"number": number, "steps": found.log, "durable": found.durable, "faults": found.faults})
                for fault in found.faults:
                    print(f"  interleaving {number}: {fault}", flush=True)

        with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
            list(lanes.map(one, range(count)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - start
    done.sort(key=lambda found: found["number"])
    report.raw.update({"seed": arguments.seed, "undisturbed_s": world.seconds, "interleavings": done})
    wrong = [found for found in done if found["faults"]]
    steps = sum(len(found["steps"]) for found in done)
    report.add(holds(f"interleavings of {steps} steps in which all was right", not wrong,
                     f"{count - len(wrong)} of {count}; {wrong[0]['faults'][:2] if wrong else ''}", f"{count} of {count}"))
    durable = sum(found["durable"] for found in done)
    report.add(holds("steps that left rows to go on with", durable >= count // 2, str(durable), f">= {count // 2}"))
    report.add(at_most("seconds", seconds, LIMIT_S, 0, " s"))
