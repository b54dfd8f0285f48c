"""Runs every command that muster prints (README, docs, --help, ./quickstart's end) on the state that ./quickstart leaves.

    run.py BUILD                with stand-ins for engine, hub and docker; part of ./test --long
    run.py BUILD --parse        runs only pulls and servers; all else is given to the program's parser; part of ./test
    run.py BUILD --real         with the real engine and the model in .deps; a part of ./accept house.4
    run.py BUILD --list         only says what there is, and how it would be run
    --only TEXT                 those whose place or text has TEXT in it

Each is run as it is printed but for what stands for something: MODEL, REPOSITORY, the ports. What cannot be run here says why.
"""

import argparse
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import printed
from state import DECODER, MODEL, ROOT, State, end

# Words that stand for something of the reader's.
PLACEHOLDERS = {"ORG/NAME-GGUF": "sentence-transformers/all-MiniLM-L6-v2", "MODEL": MODEL, "REPOSITORY": str(ROOT), "ORG/NAME": "sentence-transformers/all-MiniLM-L6-v2", "VECTORS.npy": "vectors.npy",
                "torch-env/lib/python3.*/site-packages/torch": "torch"}
# Where a model that generates is meant; ORG/NAME and FILE of the other commands are something else.
DECODERS = ("$decoder", "/models/SmolLM2.gguf", "FILE.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf", "model.gguf", "MODEL")
# "0 well, 20 warnings, 21 unfit", "22 the run is invalid, 24 an objective was missed, 25 it is not known": which of them is the machine's business.
EXIT_CODES = {"doctor": (0, 20, 21), "bench": (0, 22, 24, 25)}
BENCH_LIMIT_S = 600  # the self-test takes some minutes


def sentence(text):
    return " ".join(text.split())[-600:]


class Runner:
    def __init__(self, state, is_real, parses_only=False):
        self.state, self.is_real, self.parses_only = state, is_real, parses_only
        self.counts = {"run": 0, "parsed": 0, "left out": 0}
        self.failures, self.left_out = [], []

    def fail(self, command, why):
        self.failures.append(f"{command.place}: {command.text}\n    {sentence(why)}")

    def leave_out(self, command, why):
        self.counts["left out"] += 1
        self.left_out.append(f"{command.place}: {command.text}: {why}")

    def judge(self, command):
        how = self.parse if command.is_usage else self.way_of(command.text)
        is_pull = program_words(command.text)[1:2] == ["pull"]  # of models that servers are started with
        if self.parses_only and not is_pull and how not in (self.parse, self.serve, self.look_at_script):
            how = self.parse_line
        wrong = how(command)
        if wrong:
            self.fail(command, wrong)

    # --- how a line is run ---------------------------------------------------------------------

    def way_of(self, line):
        words = program_words(line)
        if words[0] in ("git", "./quickstart", "./test", "./accept", "./package"):
            return self.look_at_script
        if words[0].endswith("python3") and "-m" in words:
            return lambda command: self.leave_out(command, "it would fetch torch from the package index")
        if needs_decoder(line) and not self.is_real:
            return lambda command: self.leave_out(command, "it wants a model that generates, which ./test does not fetch")
        verb = words[1] if words[0].endswith("muster") and len(words) > 1 else ""
        if verb == "serve":
            return self.serve
        if verb == "top" and "--once" not in words and "|" not in words:
            return self.on_terminal
        if verb == "monitor" and "--" not in words:
            return self.watch
        return self.to_its_end

    def filled_in(self, line):
        if needs_decoder(line):
            for word in DECODERS:
                line = re.sub(rf"(?<![\w/]){re.escape(word)}(?![\w/.-])", DECODER, line)
        if "127.0.0.1:8001" in line:
            line = line.replace("127.0.0.1:8001", f"127.0.0.1:{self.state.chat_port()}")
        if re.search(r"muster bench (?:embed|rerank|generate|http) ", line) and "--duration" not in line:
            line = re.sub(r"(muster bench \w+ \S+)", r"\1 --duration 1s", line)  # of ten seconds a trial
        for word, value in PLACEHOLDERS.items():
            line = re.sub(rf"(?<![\w/]){re.escape(word)}(?![\w/.-])", value, line)
        line = line.replace("127.0.0.1:8000", f"127.0.0.1:{self.state.port}")
        line = line.replace("127.0.0.1:9400", f"127.0.0.1:{self.state.metrics_port}")
        line = line.replace("cmake --install build ", f"cmake --install {self.state.build} ")
        line = re.sub(r"\bmuster ctl (?!.*--server)", f"muster ctl --server http://127.0.0.1:{self.state.port} ", line)
        if names_nvidia(line) and "--nvml-path" not in line:
            line = f"MUSTER_NVML_PATH={self.state.build}/lib/libfakenvml.so {line}"
        return line

    def to_its_end(self, command):
        self.counts["run"] += 1
        self.make_named(command.text)
        if self.state.server is None and re.search(r"muster ctl|127\.0\.0\.1:8000", command.text):
            wrong = self.state.start_server(f"muster serve {MODEL} --devices 2xcpu")  # which such a line takes for granted
            if wrong:
                return wrong
        if "| jq" in command.text and shutil.which("jq") is None:
            command = printed.Printed(command.place, command.text.split("| jq")[0])
        words = program_words(command.text)
        limit_s = BENCH_LIMIT_S if words[1:2] == ["bench"] else 120
        code, said = self.state.run(self.filled_in(command.text), limit_s)
        allowed = EXIT_CODES.get(words[1] if len(words) > 1 else "", (0,))
        return None if code in allowed else f"exit code {code}: {said}"

    def make_named(self, line):
        """Files that somebody would have from an earlier day: vectors of answers, a result to compare with."""
        folder = self.state.folder
        for name, texts in (("news.npy", "news.jsonl --keep lang --keep year --id-field id"), ("answers.npy", "notes.txt")):
            if name in line and f"-o {name}" not in line and not (folder / name).exists():
                self.state.run(f"muster embed {MODEL} {texts} -o {name} --devices 1xcpu --quiet")
        if "after.json" in line and (folder / "before.json").exists():
            shutil.copy(folder / "before.json", folder / "after.json")

    def serve(self, command):
        self.counts["run"] += 1
        self.make_named(command.text)
        line = re.split(r"\s#|\s&$|\s&\s", self.filled_in(command.text))[0]
        wrong = self.state.start_server(line)
        return wrong or self.try_what_it_says()

    def try_what_it_says(self):
        """The server's own log has a request to paste."""
        log = self.state.server[1].read_text()
        said = re.search(r"to try it: (curl .*)", log)
        if not said:
            return f"its log names no request to try: {log}"
        code, answer = self.state.run(said[1])
        return None if code == 0 and '"embedding"' in answer else f"{said[1]}: exit code {code}: {answer}"

    def watch(self, command):
        """`muster monitor` without a command goes on until Ctrl-C."""
        self.counts["run"] += 1
        line = self.filled_in(command.text).split(" #")[0]
        out = re.search(r"--out (\S+)", line)
        path = self.state.folder / (out[1] if out else "none")
        before = path.stat().st_size if path.exists() else 0
        process, log = self.state.start(line)

        def is_there():
            if out:
                return path.exists() and path.stat().st_size > before
            return self.state.answers(f"http://127.0.0.1:{self.state.metrics_port}/metrics")
        wrong = self.state.wait_for(process, log, is_there)
        return end(process, log, signal.SIGINT, 0) if wrong is None else wrong

    def on_terminal(self, command):
        """A screen comes up, and `q` ends it."""
        self.counts["run"] += 1
        main, side = pty.openpty()
        process = subprocess.Popen(["bash", "-c", self.filled_in(command.text).split(" #")[0]], cwd=self.state.folder,
                                   env=self.state.environment, stdin=side, stdout=side, stderr=side, start_new_session=True)
        os.close(side)
        seen, limit = b"", time.monotonic() + 60
        is_asked = False
        while time.monotonic() < limit and select.select([main], [], [], limit - time.monotonic())[0]:
            try:
                piece = os.read(main, 65536)
            except OSError:  # the other side is closed
                break
            seen += piece
            if b"DEVICE" in seen and not is_asked:
                os.write(main, b"q")
                is_asked = True
            if not piece:
                break
        os.close(main)
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        return None if code == 0 and is_asked else f"exit code {code}, screen: {seen!r}"

    def look_at_script(self, command):
        words = program_words(command.text)
        if words[0] == "git":
            if not (ROOT / ".git").exists():
                return self.leave_out(command, "this folder is no clone")
            self.counts["run"] += 1
            code, said = self.state.run(self.filled_in(command.text.replace("git clone", "git clone -q --no-checkout")))
            return None if code == 0 else f"exit code {code}: {said}"
        script = ROOT / words[0]
        if not os.access(script, os.X_OK):
            return f"there is no such script: {script}"
        self.counts["parsed"] += 1
        known = subprocess.run([script, "--help"], capture_output=True, text=True, cwd=ROOT).stdout
        unknown = [word for word in words[1:] if word.startswith("--") and word not in known]
        return f"its --help does not know {unknown}" if unknown else None

    # --- usages --------------------------------------------------------------------------------

    def parse(self, command):
        """The words behind `muster COMMAND`, given to the program's own parser with --help behind them."""
        self.counts["parsed"] += 1
        text = command.text.replace("\\|", "|").split(" | ")[0]
        words = [word.strip("[]") for word in shlex.split(text)[1:] if word not in ("…", "...", "[…]")]
        return None if not words or words[0] in ("COMMAND", "--help") else self.parse_words(words, may_lack_values=True)

    def parse_line(self, command):
        """A line that would be run: what it gives to muster, and whether the models that it names are there."""
        self.counts["parsed"] += 1
        for words in muster_calls(command.text):
            models = [word.rpartition("=")[2] for word in words if word.endswith(".gguf") and "*" not in word]
            missing = [] if needs_decoder(command.text) else [name for name in models if not (self.state.folder / name).exists()]
            wrong = f"nobody has {missing}: see needs_decoder" if missing else self.parse_words(words)
            if wrong:
                return wrong
        return None

    def parse_words(self, words, may_lack_values=False):
        if words == ["--help"]:
            return None
        if "--" in words:  # what is behind is another program's
            words = words[:words.index("--")]
        for _ in range(len(words) + 1):
            done = subprocess.run([self.state.folder / "build/bin/muster", *words, "--help"], capture_output=True, text=True,
                                  env=self.state.environment, cwd=self.state.folder)
            missing = re.search(r"muster: (--?[\w-]+) needs a value", done.stderr)
            if done.returncode == 0 or not missing or not may_lack_values:
                break
            words.insert(words.index(missing[1]) + 1, "VALUE")
        return None if done.returncode == 0 else done.stderr


def muster_calls(line):
    """The words behind each `muster` of a line, up to what ends a command of the shell."""
    text = re.sub(r"[<$]\(", " ( ", line)
    calls, call, is_first = [], None, True
    for word in shlex.split(text, comments=True):
        if word in ("|", "||", "&", "&&", ";", "("):
            call, is_first = None, True
        elif re.match(r"\d?[<>]", word):
            call = None
        elif is_first and not re.match(r"[A-Za-z_]\w*=", word):
            is_first = False
            if re.fullmatch(r"(?:build/bin/|bin/)?muster", word):
                call = []
                calls.append(call)
        elif call is not None:
            call.append(word.rstrip(")") if text != line else word)
    return calls


def program_words(line):
    """The words of a line from its program on, without comment and variables before it."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        rest = words.pop(0).partition("=")[2]
        if rest.startswith("$("):
            words.insert(0, rest[2:])
    for number, word in enumerate(words):  # `zcat x | muster …`, `cd x && …`: the program that is muster's
        if word.endswith("muster") and words[number - 1] == "|":
            return words[number:]
    return words


def needs_decoder(line):
    """Whether its model is one that generates: `generate`, `chat`, and what names a GGUF file elsewhere."""
    return bool(re.search(r"muster (?:generate|chat) |muster (?:tokenize|bench generate) \S+\.gguf |muster ctl load \S+\.gguf\b|muster serve .*\.gguf\b", line))


def names_nvidia(line):
    """Whether it is written for a machine with NVIDIA GPUs. A simulated machine has its own."""
    return bool(re.search(r"\bcuda\b", line)) and "sim:" not in line


def prepare(state):
    """The last steps of ./quickstart."""
    devices = "2xcpu" if (os.cpu_count() or 1) >= 2 else "1xcpu"
    job = f"build/bin/muster embed {MODEL} .deps/corpus/packages.txt -o .deps/out/packages.npy --devices {devices} --quiet"
    code, said = state.run(job, limit_s=600)
    if code != 0:
        sys.exit(f"{job}: exit code {code}: {said}")
    # What `muster top --replay` shows: a recording of somebody's own.
    code, said = state.run("muster monitor --out stats.jsonl --interval 100ms -- true")
    if code != 0:
        sys.exit(f"muster monitor: exit code {code}: {said}")


def say_what_is_wrong_leads_on(runner):
    """The command that a not-found model is answered with, run as it stands."""
    command = printed.Printed("the answer to a model that is not there", "muster tokenize all-MiniLM-L6-v2 notes.txt")
    shutil.rmtree(runner.state.folder / "home/.cache", ignore_errors=True)
    code, said = runner.state.run(command.text)
    named = re.search(r"fetch it by (muster pull \S+)$", said.strip())
    if code != 3 or not named:
        return runner.fail(command, f"exit code {code}, and no command to paste: {said}")
    for line in (named[1], command.text):
        code, said = runner.state.run(line)
        if code != 0:
            return runner.fail(command, f"{line}: exit code {code}: {said}")
    return None


def check(build, is_real, only="", says=print, parses_only=False):
    """(counts, failures, what was left out). Each source has a state of its own, as somebody who reads only that would have."""
    totals, failures, left_out = {"run": 0, "parsed": 0, "left out": 0}, [], []
    sources = printed.everything(ROOT, pathlib.Path(build) / "bin/muster")
    if parses_only:  # nothing that is left by one source is seen by another
        sources = {"everything": [command for commands in sources.values() for command in commands]}
    for source, commands in sources.items():
        chosen = [command for command in commands if only in command.place or only in command.text]
        if not chosen:
            continue
        state = State(build, not is_real)
        runner = Runner(state, is_real, parses_only)
        try:
            if not parses_only and any(not command.is_usage for command in chosen):
                prepare(state)
            for command in chosen:
                runner.judge(command)
            if source == "--help" and not only:
                say_what_is_wrong_leads_on(runner)
        finally:
            wrong = state.close()
        if wrong:
            runner.failures.append(f"{source}: the server at its end: {sentence(wrong)}")
        failures += runner.failures
        left_out += runner.left_out
        for name, count in runner.counts.items():
            totals[name] += count
        says(f"{source}: " + ", ".join(f"{count} {name}" for name, count in runner.counts.items() if count))
    return totals, failures, left_out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--parse", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.list:
        for source, commands in printed.everything(ROOT, pathlib.Path(arguments.build) / "bin/muster").items():
            for command in commands:
                print(f"{'parse' if command.is_usage else 'run  '}  {command.place}: {command.text}")
        return
    totals, failures, left_out = check(arguments.build, arguments.real, arguments.only, parses_only=arguments.parse)
    for line in left_out:
        print(f"left out: {line}")
    for failure in failures:
        print(f"FAILED {failure}")
    print(", ".join(f"{count} {name}" for name, count in totals.items()) + f", {len(failures)} failed")
    sys.exit(1 if failures or totals["run"] == 0 else 0)


if __name__ == "__main__":
    main()
