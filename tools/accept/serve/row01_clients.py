"""The clients that people have."""

import asyncio
import base64
import json
import struct
import subprocess
import sys

import numpy
import openai

from programs import MODEL, ROOT, devices, embed, scratch
from report import holds
from serve.running import serving
from texts import corpus_lines
from vectors import differing_rows, load

TITLE = "openai and langchain-openai: sync, async, batch, base64, errors; vectors of `muster embed`"
IS_TIMED = False

COUNT = 300
EXAMPLES = ROOT / "examples" / "serving"


def rows(answers):
    return numpy.array([item.embedding for answer in answers for item in answer.data], dtype=numpy.float32)


def batches(texts, size=32):
    return [texts[i:i + size] for i in range(0, len(texts), size)]


def run_example(report, *words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120)
    report.raw[words[-1] if len(words) == 2 else str(words[1])] = {"out": done.stdout, "errors": done.stderr[-2000:]}
    name = next(str(word) for word in words if "examples" in str(word)).rsplit("/", 1)[1]
    report.add(holds(f"examples/serving/{name}", done.returncode == 0, f"exit {done.returncode}", "exit 0"))


async def ask_async(url, model, texts):
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        return await asyncio.gather(*(client.embeddings.create(model=model, input=batch) for batch in batches(texts)))


def refused(client, **fields):
    """Class, status and code of the error, or that there was none."""
    try:
        client.with_options(max_retries=0).embeddings.create(**fields)
    except openai.APIStatusError as error:
        return f"{type(error).__name__} {error.status_code} {error.code}"
    return "no error"


def check_errors(report, client, model):
    cases = {
        "unknown model": (dict(model="no-such-model", input="a"), "NotFoundError 404 model_not_found"),
        "empty list": (dict(model=model, input=[]), "BadRequestError 400 empty_array"),
        "too many dimensions": (dict(model=model, input="a", dimensions=4096), "BadRequestError 400 invalid_value"),
        "unknown field": (dict(model=model, input="a", extra_body={"dimension": 3}), "BadRequestError 400 unknown_parameter"),
        "too many texts": (dict(model=model, input=["a"] * 2049), "BadRequestError 400 array_above_max_length"),
        "ids outside the vocabulary": (dict(model=model, input=[[100257]]), "BadRequestError 400 invalid_token_ids"),
    }
    for name, (fields, expected) in cases.items():
        said = refused(client, **fields)
        report.add(holds(f"openai, {name}", said == expected, said, expected))


def check_vectors(report, server, texts, expected):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
    model = client.models.list().data[0].id
    ways = {
        "sync, as the client asks (base64)": lambda: rows(client.embeddings.create(model=model, input=b) for b in batches(texts)),
        "sync, float": lambda: rows(client.embeddings.create(model=model, input=b, encoding_format="float") for b in batches(texts)),
        "sync, a text a request": lambda: rows(client.embeddings.create(model=model, input=text) for text in texts[:50]),
        "async": lambda: rows(asyncio.run(ask_async(server.url, model, texts))),
    }
    for name, way in ways.items():
        got = way()
        wrong = differing_rows(got, expected[:len(got)])
        report.add(holds(f"openai, {name}: rows that differ from `muster embed`", wrong == 0, f"{wrong} of {len(got)}", "0"))
    status, body = server.call("POST", "/v1/embeddings", {"model": model, "input": texts[:1], "encoding_format": "base64"})
    words = base64.b64decode(json.loads(body)["data"][0]["embedding"])
    same = struct.unpack(f"<{len(words) // 4}f", words) == tuple(expected[0].tolist())
    report.add(holds("base64 by hand", status == 200 and same, "the same bits" if same else "others", "the same bits"))
    check_errors(report, client, model)
    return model


def check_langchain(report, server, model, texts, expected):
    from langchain_openai import OpenAIEmbeddings
    options = dict(model=model, base_url=f"{server.url}/v1", api_key="none")
    plain = OpenAIEmbeddings(**options, check_embedding_ctx_length=False)
    got = numpy.array(plain.embed_documents(texts), dtype=numpy.float32)
    report.add(holds("langchain-openai: rows that differ", differing_rows(got, expected) == 0, str(differing_rows(got, expected)), "0"))
    again = numpy.array(asyncio.run(plain.aembed_documents(texts[:40])), dtype=numpy.float32)
    report.add(holds("langchain-openai, async: rows that differ", differing_rows(again, expected[:40]) == 0,
                     str(differing_rows(again, expected[:40])), "0"))


def measure(report, arguments):
    texts = [line for line in corpus_lines() if line.strip()][:COUNT]
    file = scratch("clients.txt")
    file.write_text("\n".join(texts) + "\n")
    out = scratch("clients.npy")
    embed(file, out, "--devices", devices(2))
    expected = numpy.array(load(out), dtype=numpy.float32)
    with serving(MODEL, "--devices", devices(2), name="clients") as server:
        model = check_vectors(report, server, texts, expected)
        check_langchain(report, server, model, texts, expected)
        run_example(report, sys.executable, EXAMPLES / "openai_client.py", server.url)
        run_example(report, sys.executable, EXAMPLES / "langchain_client.py", server.url, model)
        run_example(report, EXAMPLES / "curl.sh", server.url)
        server.stop()
