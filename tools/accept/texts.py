"""The texts that rows run on: always the same for the same files."""

import random
import unicodedata

from programs import CORPUS, ROOT, scratch

SAMPLE_COUNT = 8000


def corpus_lines():
    return CORPUS.read_text(encoding="utf-8").splitlines()


def sample_file(count=SAMPLE_COUNT):
    """`count` lines of the corpus, evenly spread over it, as a file."""
    lines = corpus_lines()
    picked = [lines[i * len(lines) // count] for i in range(min(count, len(lines)))]
    return write_lines(f"sample-{len(picked)}.txt", picked)


def write_lines(name, lines):
    path = scratch(name)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def random_script_text(generator, length):
    """Letters, marks and signs of one script, in words, as no person would write them."""
    first, last = generator.choice([(0x20, 0x7e), (0xa1, 0x24f), (0x370, 0x3ff), (0x400, 0x4ff), (0x590, 0x5f4),
                                    (0x620, 0x6ff), (0x900, 0x97f), (0xe01, 0xe5b), (0x1100, 0x11ff),
                                    (0x3041, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0x1f300, 0x1f64f)])
    letters = []
    for _ in range(length):
        letter = chr(generator.randint(first, last))
        letters.append(" " if unicodedata.category(letter) in ("Cn", "Cc", "Cs") or generator.random() < 0.15 else letter)
    return " ".join("".join(letters).split()) or "x"


def texts_of_all_kinds(count=1000, seed=2):
    """A thousand texts: the shipped multilingual ones, package lines, chains of up to sixty of them (past
    every length limit), and random letters of many scripts."""
    generator = random.Random(seed)
    shipped = (ROOT / "data" / "precision_texts.txt").read_text(encoding="utf-8").splitlines()
    packages = (ROOT / "data" / "sample_texts.txt").read_text(encoding="utf-8").splitlines()
    texts = list(shipped)
    while len(texts) < count:
        kind = generator.random()
        if kind < 0.35:
            texts.append(generator.choice(packages))
        elif kind < 0.65:
            texts.append(" ".join(generator.sample(packages, generator.randint(2, 60))))
        elif kind < 0.8:
            texts.append(" ".join(generator.sample(shipped, generator.randint(2, 5))))
        else:
            texts.append(random_script_text(generator, generator.randint(1, 400)))
    return texts[:count]
