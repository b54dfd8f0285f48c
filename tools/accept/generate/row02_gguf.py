"""A GGUF file against llama.cpp: ids, the ends of a reply, the template, every weight as a float."""

import hashlib
import json
import subprocess
import sys

import texts
from generate.reference import SMOLLM2, build, hash_of, llama_cpp, missing
from programs import MUSTER, PEER_PYTHON, ROOT, scratch
from report import holds

TITLE = "GGUF against llama.cpp: ids, stop ids, chat template, dequantised weights of eleven types"
IS_TIMED = False

CORPUS_TEXTS, RANDOM_TEXTS = 20_000, 3_000
MESSAGES = [{"role": "user", "content": "What is 12345 + 678?"}, {"role": "assistant", "content": "13023"},
            {"role": "user", "content": "  And in Chinese: 中文? "}]

RENDER = """
import json, sys
import gguf
from transformers.utils.chat_template_utils import render_jinja_template
template = gguf.GGUFReader(sys.argv[1]).fields["tokenizer.chat_template"].contents()
texts, _ = render_jinja_template(conversations=[json.load(open(sys.argv[2]))], chat_template=template,
                                 add_generation_prompt=True)
print(json.dumps(texts[0]))
"""


def skip_reason():
    return missing()


def write_texts(seed):
    path = scratch("generate-texts.jsonl")
    chosen = [*texts.corpus_lines()[:CORPUS_TEXTS], *texts.texts_of_all_kinds(RANDOM_TEXTS, seed),
              "<|im_start|>user\nHi<|im_end|>\n", "1234567890 3.14", "\n\n \t\r\n x"]
    # A NUL ends a text for some of the reference's functions.
    with open(path, "w", encoding="utf-8") as out:
        for text in chosen:
            if "\0" not in text:
                out.write(json.dumps({"text": text}) + "\n")
    return path


def muster_lines(*arguments):
    done = subprocess.run([MUSTER, "tokenize", SMOLLM2, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def compare_ids(report, seed):
    path = write_texts(seed)
    ours = [json.loads(line)["ids"] for line in muster_lines(path)]
    theirs = [json.loads(line)["ids"] for line in llama_cpp("ids", SMOLLM2, path).decode().split("\n")[:-1]]
    differing = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    report.raw["ids"] = {"texts": len(ours), "tokens": sum(map(len, ours)), "differing": differing[:50], "seed": seed}
    report.add(holds(f"ids of {len(ours):,} texts, {sum(map(len, ours)):,} tokens", len(ours) == len(theirs) and not differing,
                     f"{len(differing)} texts differ", "0 texts differ"))


def compare_chat(report):
    path = scratch("generate-messages.json")
    path.write_text(json.dumps(MESSAGES))
    line = json.loads(muster_lines("--chat", path)[0])
    rendered = json.loads(subprocess.run([PEER_PYTHON, "-c", RENDER, SMOLLM2, path], capture_output=True, text=True,
                                         check=True).stdout)
    stops = json.loads(llama_cpp("stops", SMOLLM2))
    report.raw["chat"] = {"ours": line, "transformers": rendered, "llama.cpp stops": stops}
    report.add(holds("the file's chat template against transformers' rendering", line["text"] == rendered,
                     "equal" if line["text"] == rendered else "differs", "equal"))
    report.add(holds("ids that end a reply", line["stop_ids"] == stops, f"{line['stop_ids']}", f"{stops}"))


def compare_floats(report, name, path):
    program = build("gguf_floats")
    ours, size = hash_of([program, path])
    theirs = hashlib.sha256(llama_cpp("floats", path)).hexdigest()
    report.raw[name] = {"ours": ours, "llama.cpp": theirs, "bytes": size}
    report.add(holds(f"{name}: {size // 4:,} weights as floats", ours == theirs, "equal" if ours == theirs else "differ",
                     "equal bit for bit"))


def measure(report, arguments):
    compare_ids(report, arguments.seed)
    compare_chat(report)
    compare_floats(report, "SmolLM2", SMOLLM2)
    made = scratch("generate-types.gguf")
    llama_cpp("quantise", made, arguments.seed)
    compare_floats(report, "every type, quantised by llama.cpp", made)
    typed = ROOT / "src" / "modelfile" / "testdata" / "weights.gguf"
    compare_floats(report, "every type, written by the package gguf", typed)


if __name__ == "__main__":
    sys.exit("run ./accept generate.2")
