"""The ids of every model type against Hugging Face `tokenizers`, on the corpus and more."""

import re
import shutil
import subprocess

from programs import CORPUS, MODEL, MUSTER, PEER_PYTHON, ROOT, scratch
from report import holds

TITLE = "Ids against Hugging Face tokenizers 0.23: the corpus, a multilingual set, 120,000 fuzzed strings"
IS_TIMED = False

ORACLE = ROOT / "tools" / "fixtures" / "tokenizer_oracle.py"
SETS = ("multilingual.jsonl", "fuzz.jsonl", "clusters.jsonl")


def measure(report, arguments):
    folder = scratch("tokenizers")
    if not (folder / "minilm" / "tokenizer.json").exists():
        subprocess.run([PEER_PYTHON, "-B", ORACLE, "generate", folder, "--minilm", MODEL / "tokenizer.json"], check=True,
                       stdout=subprocess.DEVNULL)
    for tokenizer in folder.glob("*/tokenizer.json"):
        # A model folder must say what it is; ids do not depend on it.
        shutil.copy(MODEL / "config.json", tokenizer.parent)
    sets = [CORPUS, *(folder / name for name in SETS)]
    for tokenizer in sorted(path.parent for path in folder.glob("*/tokenizer.json")):
        done = subprocess.run([PEER_PYTHON, "-B", ORACLE, "compare", "--muster", MUSTER, "--tokenizer", tokenizer,
                               "--texts", *sets], capture_output=True, text=True)
        report.raw[tokenizer.name] = done.stdout[-20000:] + done.stderr[-2000:]
        counts = re.findall(r": (\S+): (\d+) texts, (\d+) differ", done.stdout)
        texts, differing = (sum(int(row[i]) for row in counts) for i in (1, 2))
        report.add(holds(f"{tokenizer.name}: {texts:,} texts", done.returncode == 0 and len(counts) == len(sets),
                         f"{differing} differ" if done.returncode in (0, 1) else done.stderr.strip()[-200:], "0 differ"))
