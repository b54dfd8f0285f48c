"""XLM-R: its ids, its vectors, and the scores of cross-encoders, against the libraries people have."""

import json
import re
import subprocess

import numpy

from programs import KIND, MUSTER, PEER_PYTHON, ROOT, devices, scratch
from report import at_most, holds
from serve.running import serving
from texts import corpus_lines

TITLE = "XLM-R: ids against tokenizers 0.23, vectors and rerank scores against sentence-transformers 6.0"
IS_TIMED = False

ORACLE = ROOT / "tools" / "fixtures" / "tokenizer_oracle.py"
SETS = ("multilingual.jsonl", "fuzz.jsonl")  # the latter: 100,000 strings
TOKENIZERS = ("bert_uncased", "roberta", "xlm_roberta")
TEXTS = 400
QUERIES, DOCUMENTS = 30, 20


def tokenizers():
    folder = scratch("tokenizers-rerank")
    if not all((folder / name / "tokenizer.json").exists() for name in TOKENIZERS):
        subprocess.run([PEER_PYTHON, "-B", ORACLE, "generate", folder, "--only", *TOKENIZERS], check=True,
                       stdout=subprocess.DEVNULL)
    return folder


def check_ids(report, folder):
    done = subprocess.run([PEER_PYTHON, "-B", ORACLE, "compare", "--muster", MUSTER, "--tokenizer", folder / "xlm_roberta",
                           "--texts", *(folder / name for name in SETS)], capture_output=True, text=True)
    report.raw["ids"] = done.stdout[-20000:] + done.stderr[-2000:]
    counts = re.findall(r": (\S+): (\d+) texts, (\d+) differ", done.stdout)
    for name, texts, differing in counts:
        report.add(holds(f"ids of {int(texts):,} texts of {name}", differing == "0", f"{differing} differ", "0 differ"))
    report.add(holds("every set of texts was compared", len(counts) == len(SETS), done.stderr.strip()[-200:] or "yes"))


def some_texts(folder, count, seed):
    """Lines of the corpus, sentences in many languages, and fuzzed strings, in a fixed random order."""
    lines = corpus_lines()[:5000]
    for name in SETS:
        with open(folder / name, encoding="utf-8") as rows:
            lines += [json.loads(row)["text"] for _, row in zip(range(1000), rows)]
    # JSON holds no lone surrogate, and neither does any client's text.
    order = numpy.random.default_rng(seed).permutation(len(lines))
    return [lines[i] for i in order[:count]]


def rerank(server, model, query, documents, **fields):
    status, body = server.call("POST", "/v1/rerank", {"model": model, "query": query, "documents": documents, **fields})
    if status != 200:
        raise RuntimeError(f"{status}: {body[:300]!r}")
    scores = [None] * len(documents)
    for result in json.loads(body)["results"]:
        scores[result["index"]] = result["relevance_score"]
    return scores


def check_vectors(report, server, path, texts):
    from sentence_transformers import SentenceTransformer

    ours = numpy.array(server.embed(texts, model=path.name, timeout_s=300), dtype=numpy.float64)
    theirs = SentenceTransformer(str(path), device="cpu").encode(texts, batch_size=16)
    report.add(at_most(f"vectors of {len(texts)} texts, largest difference (x 1e-6)", numpy.abs(ours - theirs).max() * 1e6, 10))


def check_scores(report, server, path, queries, documents):
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(path), device="cpu")
    pairs = [(query, document) for query in queries for document in documents]
    lengths = [len(ids) for ids in model.tokenizer([a for a, _ in pairs], [b for _, b in pairs])["input_ids"]]
    cut = sum(length > model.max_seq_length for length in lengths)
    for what, fields, words in (("scores", {}, {}), ("raw scores", {"raw_scores": True}, {"activation_fn": torch.nn.Identity()})):
        theirs = numpy.array(model.predict(pairs, batch_size=16, **words), dtype=numpy.float64)
        ours = [score for query in queries for score in rerank(server, path.name, query, documents, **fields)]
        difference = numpy.abs(numpy.array(ours) - theirs).max()
        report.raw[f"{path.name} {what}"] = {"ours": ours, "theirs": theirs.tolist()}
        report.add(at_most(f"{path.name}: {what} of {len(pairs)} pairs, {cut} of them cut, {theirs.min():.3f} to "
                           f"{theirs.max():.3f}, largest difference (x 1e-6)", difference * 1e6, 10))


def measure(report, arguments):
    from serve.tiny_models import write_cross_encoders, write_encoder

    folder = tokenizers()
    check_ids(report, folder)
    models = scratch("rerank-models")
    encoder = write_encoder(models, folder)
    crosses = write_cross_encoders(models, folder)
    with serving(encoder, *crosses, "--devices", "cpu" if KIND == "cpu" else devices(1), "--precision", "fp32", name="xlmr") as server:
        check_vectors(report, server, encoder, some_texts(folder, TEXTS, 1))
        queries, documents = some_texts(folder, QUERIES, 2), some_texts(folder, DOCUMENTS, 3)
        for cross in crosses:
            check_scores(report, server, cross, queries, documents)
