"""What the documents let people type, given to muster word for word: it runs, or one warning or one sentence says what holds
instead. blocks.json is the documents' own text (tools/fixtures/document_blocks.py); each of its lines has a rule here.
"""

import json
import pathlib
import re

from state import MODEL

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BLOCKS = json.loads((HERE / "blocks.json").read_text())
SETTINGS_PAGE = (ROOT / "docs/settings.md").read_text()

# Programs of others, which the documents only use.
OF_OTHERS = re.compile(r"^(sudo|wget|curl|docker|docker-compose|pip|git|cd|nvidia-smi|nvcc|watch)\b|^distribution=")
# The environments that tests/cli starts a server with.
STARTED = {122: "sample", 239: "throughput", 254: "latency", 269: "balanced"}


def lines_of(text):
    """Lines without comments; those that a backslash continues are one."""
    joined = re.sub(r"\\\n\s*", "", text)
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def assignments(text):
    """NAME -> value, as compose and a shell read them."""
    found = {}
    for line in lines_of(text):
        name, _, value = line.removeprefix("export ").partition("=")
        found[name.strip()] = value.split(" #")[0].strip()
    return found


class Blocks:
    """Runs the blocks on a state (tests/commands/state.py)."""

    def __init__(self, state):
        self.state, self.faults, self.counts = state, [], {"run": 0, "answered by a sentence": 0, "of other programs": 0}

    def expect(self, is_right, block, sentence):
        if not is_right:
            self.faults.append(f"document {block['document']}, line {block['line']}: {sentence}")

    def one_sentence(self, block, line, *parts):
        """It ends with 2 and one line that has all the parts."""
        code, said = self.state.run(line)
        self.counts["answered by a sentence"] += 1
        is_one = said.startswith("muster: ") and said.count("\n") == 1
        self.expect(code == 2 and is_one and all(part in said for part in parts), block,
                    f"{line}: exit code {code}, and not one sentence with {parts}: {said}")

    def runs(self, block, line, codes=(0,)):
        code, said = self.state.run(line)
        self.counts["run"] += 1
        self.expect(code in codes, block, f"{line}: exit code {code}: {said}")

    # --- environment -------------------------------------------------------------------------------

    def environment(self, block):
        given = assignments(block["text"])
        words = " ".join(f"{name}='{value}'" for name, value in given.items())
        self.state.write("said", "")
        code, said = self.state.run(f"{words} muster config --json 2>said")
        warning = (self.state.folder / "said").read_text()
        self.counts["run"] += 1
        self.expect(code == 0, block, f"muster config: exit code {code}: {warning}")
        self.expect(warning == "" or (warning.startswith("muster: warning: ") and warning.count("\n") == 1), block, f"not one warning: {warning}")
        if code != 0:
            return
        places = {setting["place"] for setting in json.loads(said).values()}
        for name, value in given.items():
            is_silent = re.search(rf"^\| `{name}` \|.*`{re.escape(value)}`: as it is anyhow", SETTINGS_PAGE, flags=re.M)
            self.expect(name in places or name in warning or is_silent, block, f"{name}={value} sets nothing and nothing is said of it")
        if block["line"] in STARTED and block["document"] == 3:
            file = ROOT / f"tests/cli/environments/{STARTED[block['line']]}.env"
            self.expect(assignments(file.read_text()) == given, block, f"{file.name} is not the document's own")

    # --- files ---------------------------------------------------------------------------------------

    def yaml(self, block):
        self.state.write("muster.yaml", block["text"] + "\n")
        self.one_sentence(block, "muster config", "muster.yaml:1: unknown setting: backend", "device_ids is devices", "muster plan (--strategy")
        (self.state.folder / "muster.yaml").unlink()

    # --- commands ------------------------------------------------------------------------------------

    def shell(self, block):
        for line in lines_of(block["text"]):
            self.line(block, line)

    def line(self, block, line):
        if OF_OTHERS.match(line):
            self.counts["of other programs"] += 1
        elif "deploy_multi_gpu_container.py" in line:
            self.deploy(block, "muster deploy container" + line.partition("deploy_multi_gpu_container.py")[2])
        elif "test_multigpu_config.py" in line:
            self.runs(block, "muster doctor --no-compute", (0, 20, 21))
        elif "run_benchmark.sh" in line or "ai_energy_benchmarks.runner" in line:
            self.benchmark(block, line.split()[-1])
        elif "gpu.benchmark" in line:
            self.batch_sizes(block)
        elif "uvicorn" in line:
            self.one_sentence(block, "muster serve " + line[line.index("--host"):], "unknown flag of muster serve: --host; did you mean --listen?")
        else:
            self.faults.append(f"document {block['document']}, line {block['line']}: no rule for: {line}")

    def benchmark(self, block, file):
        """Document 1's own file, with what it leaves out: a model and how many texts. This machine computes on its CPU."""
        (self.state.folder / file).parent.mkdir(exist_ok=True)
        own = next(one["text"] for one in BLOCKS if one["document"] == 1 and one["kind"] == "yaml")
        self.state.write(file, f"{own}\n  model: {MODEL}\nscenario: {{num_samples: 16}}\n")
        on_cpu = "backend.device=cpu 'backend.device_ids=[0]' 'backend.max_memory={0: 20GB}'"
        self.runs(block, f"muster bench run {file} {on_cpu} --restart", (0, 22))

    def batch_sizes(self, block):
        """Document 3's flags as a sweep."""
        self.state.write("sizes.yaml", f"backend: {{model: {MODEL}, device: cpu}}\nscenario: {{num_samples: 16}}\n"
                                       "reporter: {output_file: sizes.csv}\n")
        line = "muster bench run sizes.yaml 'scenario.input_shapes.batch_size=[1, 8, 16]' 'backend.torch_dtype={}'"
        self.runs(block, line.format("[auto, float32]"), (0, 22))
        self.runs(block, f"{line.format('[float16, int8]')} --restart", (0, 22))

    def deploy(self, block, line):
        """As it stands; where muster asks for a word, with that word. The machine has the document's GPUs."""
        line = f"MUSTER_NVML_PATH={self.state.build}/lib/libfakenvml.so {line}"
        if "--api-type" in line:
            self.one_sentence(block, line, "--api-type; did you mean --api?")
            line = line.replace("--api-type", "--api")
        if "--model" in line and "--api " not in line:
            self.one_sentence(block, line, "which server? Name it with --api: tgi, tei, vllm or muster")
            line += " --api tgi"
        if "--model" in line and "--devices" not in line and "--auto-select" not in line:
            self.one_sentence(block, line, "which devices? Name them with --devices")
            line += " --devices cuda:0"
        if "--auto-select" in line:
            code, said = self.state.run(line)
            self.counts["answered by a sentence"] += 1
            self.expect(code == 3 and said.count("\n") == 1 and "--auto-select must know how large the model is" in said, block, f"{line}: {said}")
            return
        self.runs(block, line)

    def check(self):
        for block in BLOCKS:
            getattr(self, block["kind"])(block)
        return self.faults, self.counts
