"""docs/from-the-documents.md against the program: what a row says is there is there, and what it says is not yet there is refused.

  routes       answer, or answer 404 where they are not yet there
  variables    set a setting, or are named in a warning or an error
  flags        exist, and take the value that stands with them
  keys         of the documents' own files are refused by name, where muster has no setting of that name
"""

import json
import pathlib
import re
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/from-the-documents.md"
ROUTE = re.compile(r"^(?:(GET|POST) )?(/[\w/{}.]+)$")
VARIABLE = re.compile(r"^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$")
KEY = re.compile(r"^[a-z]\w*$")
FLAG = re.compile(r"^(--[a-z][\w-]+)(?: (\S+))?")
# What is for other programs, and muster only looks at or hands on: the rows say how.
OF_OTHERS = {"CUDA_VISIBLE_DEVICES", "VERSION_ID", "NUM_SHARD", "ALLOW_TENSORFLOW"}
# A flag of the server in a container -> the words of `muster deploy container` that lead to it.
OF_CONTAINERS = {"--num-shard": "--api tgi --model facebook/opt-1.3b --devices cuda:0,cuda:1 --dry-run"}
# Values that one or another variable takes, so that each is either set or warned of.
VALUES = ("true", "1", "0.5", "auto", "fp16", "DEBUG", "a/file")
# Paths of routes that take a POST with some body; an empty object is an error of the caller's, and no missing route.
POST_ONLY = {"/multigpu/training/dataparallel"}


def rows_of(text):
    """[(line number, names of the first column, what the last one says)]."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = re.split(r"(?<!\\) \| ", line.strip().removeprefix("| ").removesuffix(" |"))
        if not line.startswith("| ") or len(cells) != 3 or cells[0] in ("name", "---"):
            continue
        found.append((number, re.findall(r"`([^`]+)`", cells[0]), cells[2]))
    return found


class Promises:
    def __init__(self, state):
        self.state, self.faults = state, []
        self.counts = {"rows": 0, "routes": 0, "variables": 0, "flags": 0, "keys": 0}
        code, said = state.run("muster config --json")
        self.settings = json.loads(said) if code == 0 else {}
        _, general = state.run("muster --help")
        self.help = {name: state.run(f"muster {name} --help")[1] for name in re.findall(r"^  ([a-z]+) {2,}", general.split("examples:")[0], flags=re.M)}

    def expect(self, is_right, line, sentence):
        if not is_right:
            self.faults.append(f"docs/from-the-documents.md:{line}: {sentence}")

    def status(self, method, path):
        url = f"http://127.0.0.1:{self.state.port}{path.replace('{gpu_id}', '0')}"
        request = urllib.request.Request(url, method=method, headers={"Content-Type": "application/json"})
        if method == "POST":
            request.data = b"{}"
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def route(self, line, name, state):
        method, path = ROUTE.match(name).groups()
        self.counts["routes"] += 1
        methods = [method] if method else ["POST"] if path in POST_ONLY else ["GET"]
        statuses = [self.status(method, path) for method in methods]
        is_there = any(status not in (404, 405) for status in statuses)
        is_promised = "**not yet**" not in state and "**will not be**" not in state
        self.expect(is_there == is_promised, line, f"{name} answers {statuses[0]}, and the row says it is{'' if is_promised else ' not'} there")

    def variable(self, line, name):
        if name in OF_OTHERS:
            return
        self.counts["variables"] += 1
        for value in VALUES:
            self.state.write("said", "")
            code, said = self.state.run(f"{name}={value} muster config --json 2>said")
            if name in (self.state.folder / "said").read_text():
                return
            if code == 0 and any(setting["place"] == name for setting in json.loads(said).values()):
                return
        self.expect(False, line, f"{name} sets nothing, whatever its value, and nothing is said of it")

    def flag(self, line, span):
        name, value = FLAG.match(span).groups()
        self.counts["flags"] += 1
        if name in OF_CONTAINERS:
            code, said = self.state.run(f"muster deploy container {OF_CONTAINERS[name]}")
            return self.expect(code == 0 and f" {name} " in said, line, f"{name} is not among the words of the container: {said}")
        owners = [command for command, text in self.help.items() if re.search(rf"(?<![\w-]){name}(?![\w-])", text.split("examples:")[0])]
        self.expect(owners, line, f"no command has the flag {name}")
        setting = self.settings.get(name.removeprefix("--").replace("-", "_"))
        if not owners or setting is None or value is None or value.isupper():
            return
        for one in value.replace("\\|", "|").split("|"):
            code, said = self.state.run(f"muster config {name} '{one}'")
            self.expect(code == 0, line, f"{name} {one}: {said}")

    def key(self, line, name):
        """A key of somebody else's file, put into ours."""
        if name in self.settings:
            return
        self.counts["keys"] += 1
        self.state.write("others.yaml", f"{name}: 1\n")
        code, said = self.state.run("muster config --config others.yaml")
        is_alias = code == 0  # another program's name of a setting of ours
        self.expect(is_alias or (code == 2 and f"setting: {name}" in said) or f"{name}" in said, line, f"{name} in a settings file: exit code {code}: {said}")

    def check(self):
        for line, names, state in rows_of(PAGE.read_text()):
            self.counts["rows"] += 1
            for name in names:
                if ROUTE.match(name):
                    self.route(line, name, state)
                elif VARIABLE.match(name):
                    self.variable(line, name)
                elif KEY.match(name):
                    self.key(line, name)
            for span in re.findall(r"`([^`]+)`", state):
                if FLAG.match(span):
                    self.flag(line, span)
                elif re.match(r"(GET|POST) /", span) and ROUTE.match(span):
                    self.route(line, span, "")
        return self.faults, self.counts
