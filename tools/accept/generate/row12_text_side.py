"""Chat templates against transformers, and the text of fuzzed ids against Hugging Face tokenizers."""

import json
import random
import subprocess

from generate.reference import LLAMA_CPP
from programs import MUSTER, PEER_PYTHON, ROOT, scratch
from report import at_least, holds

TITLE = "Chat templates of published models against transformers; 100,000 fuzzed id sequences against tokenizers"
IS_TIMED = False

SEQUENCES = 100_000
FAMILIES_MIN = 10
CHAT = ROOT / "src" / "chat" / "testdata"
TOKENIZERS = ROOT / "src" / "tokenizer" / "testdata"
# One with each kind of decoder that models which generate have.
DECODED = ("llama3", "llama2", "gemma", "qwen2", "gpt2")

RENDER = """
import json, pathlib, sys
sys.path.insert(0, sys.argv[1])
from chat_templates import FixedTime, render
from transformers.utils import chat_template_utils
chat_template_utils.datetime = FixedTime
conversations = json.load(open(sys.argv[2]))
for path in sys.argv[3:]:
    for name, conversation in conversations.items():
        try:
            text = render(pathlib.Path(path).read_text(), conversation)
        except Exception:
            text = None
        print(json.dumps({"template": path, "conversation": name, "text": text}))
"""

DECODE = """
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
for line in open(sys.argv[2]):
    print(json.dumps({"text": tokenizer.decode(json.loads(line), skip_special_tokens=True)}))
"""


def template_paths():
    """The committed ones, and those that llama.cpp tests with, where its source is there."""
    more = sorted((LLAMA_CPP / "source" / "vendor" / "llama.cpp" / "models" / "templates").glob("*.jinja"))
    return sorted((CHAT / "templates").glob("*.jinja")), more


def render_ours(template, conversation):
    """The text, or None where muster refuses, and what it says."""
    folder = scratch("generate-chat")
    folder.mkdir(exist_ok=True)
    (folder / "tokenizer.json").write_bytes((TOKENIZERS / "llama3" / "tokenizer.json").read_bytes())
    (folder / "tokenizer_config.json").write_text('{"bos_token": "<s>", "eos_token": "</s>"}')
    (folder / "chat_template.jinja").write_bytes(open(template, "rb").read())
    asked = dict(conversation, add_generation_prompt=conversation.get("add_generation_prompt", False))
    asked |= asked.pop("variables", {})
    (folder / "conversation.json").write_text(json.dumps(asked))
    done = subprocess.run([MUSTER, "tokenize", folder, "--chat", folder / "conversation.json"], capture_output=True, text=True)
    return (json.loads(done.stdout)["text"] if done.returncode == 0 else None), done.stderr.strip()


def compare_templates(report, title, paths, is_required):
    script = ROOT / "tools" / "fixtures"
    done = subprocess.run([PEER_PYTHON, "-B", "-c", RENDER, script, CHAT / "conversations.json", *paths],
                          capture_output=True, text=True, check=True)
    conversations = json.loads((CHAT / "conversations.json").read_text())
    alike, differing = {}, []
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if "strftime_now" in open(row["template"], encoding="utf-8").read():
            continue  # today's date on one side, a fixed one on the other
        ours, message = render_ours(row["template"], conversations[row["conversation"]])
        is_equal = ours == row["text"]
        alike[row["template"]] = alike.get(row["template"], True) and is_equal
        if not is_equal:
            differing.append({**row, "ours": ours, "message": message})
    report.raw[title] = {"templates": alike, "differing": differing[:40]}
    equal = sum(alike.values())
    if is_required:
        report.add(holds(title, equal == len(alike), f"{equal} of {len(alike)} byte for byte", "all"))
        report.add(at_least("published models among them", equal, FAMILIES_MIN, digits=0))
    else:
        report.add(at_least(f"{title}: {equal} of {len(alike)}", equal / len(alike), 0.8))


def fuzzed_ids(vocabulary, generator):
    """Ids as a model may emit them, bytes and special tokens often."""
    size = generator.randrange(1, 24)
    common = [generator.randrange(0, min(300, vocabulary)) for _ in range(4)]
    return [generator.choice(common) if generator.random() < 0.4 else generator.randrange(vocabulary) for _ in range(size)]


def compare_decoding(report, seed):
    generator = random.Random(seed)
    for name in DECODED:
        described = json.loads((TOKENIZERS / name / "tokenizer.json").read_text())
        vocabulary = len(described["model"]["vocab"])
        folder = scratch(f"generate-{name}")
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer.json").write_bytes((TOKENIZERS / name / "tokenizer.json").read_bytes())
        (folder / "config.json").write_text('{"model_type": "llama", "vocab_size": 2000, "num_hidden_layers": 1}')
        ids = folder / "ids.jsonl"
        with open(ids, "w") as out:
            for _ in range(SEQUENCES // len(DECODED)):
                out.write(json.dumps(fuzzed_ids(vocabulary, generator)) + "\n")
        ours = subprocess.run([MUSTER, "tokenize", folder, ids, "--decode"], capture_output=True, text=True, check=True).stdout
        theirs = subprocess.run([PEER_PYTHON, "-c", DECODE, folder / "tokenizer.json", ids], capture_output=True, text=True,
                                check=True).stdout
        # Not by splitlines, which also cuts at U+2028 and its like: they stand in JSON as they are.
        pairs = list(zip(ours.rstrip("\n").split("\n"), theirs.rstrip("\n").split("\n")))
        differing = [i for i, (a, b) in enumerate(pairs) if json.loads(a) != json.loads(b)]
        report.raw[f"decoding {name}"] = {"sequences": len(pairs), "differing": differing[:50], "seed": seed}
        report.add(holds(f"text of {len(pairs):,} fuzzed id sequences, {name}",
                         len(pairs) == SEQUENCES // len(DECODED) and not differing, f"{len(differing)} differ", "0 differ"))


def measure(report, arguments):
    committed, more = template_paths()
    compare_templates(report, "templates of src/chat/testdata, eight conversations each", committed, True)
    if more:
        compare_templates(report, "templates that llama.cpp tests with", more, False)
    compare_decoding(report, arguments.seed)
