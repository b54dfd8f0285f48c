"""The clients of other servers, each as its users call it."""

import asyncio
import base64
import json
import os
import struct

import numpy

from house.tiny_reranker import write_reranker
from programs import MODEL, embed, scratch
from report import holds
from serve.running import serving
from texts import corpus_lines
from vectors import differing_rows, load

TITLE = "openai, langchain-openai, litellm, cohere, ollama and huggingface_hub: the bits of `muster embed` over every route"
IS_TIMED = False

COUNT = 64
KEY = "none"  # clients want one; the server has no keys file
QUERY = "a tool that shows the temperature of a disk"


def rows(vectors):
    return numpy.array(vectors, dtype=numpy.float32)


def check_rows(report, name, make, expected):
    """`make` gives a vector for each text; a client that fails is a miss of its own."""
    try:
        got = rows(make())
    except Exception as error:  # whatever a client raises
        report.raw[name] = repr(error)
        report.add(holds(f"{name}: rows that differ", False, f"{type(error).__name__}: {str(error)[:200]}", "0"))
        return
    wrong = differing_rows(got, expected)
    report.add(holds(f"{name}: rows that differ", wrong == 0, f"{wrong} of {len(expected)}", "0"))


def check_scores(report, name, make, expected):
    """`make` gives {index: score}; equal to the last bit of the float32."""
    try:
        got = {int(index): float(numpy.float32(score)) for index, score in make()}
    except Exception as error:
        report.raw[name] = repr(error)
        report.add(holds(f"{name}: scores", False, f"{type(error).__name__}: {str(error)[:200]}", "the server's"))
        return
    report.add(holds(f"{name}: scores", got == expected, "the same" if got == expected else f"{got} and not {expected}", "the server's"))


def litellm_ways(url, model):
    """Name -> words of litellm.embedding for each provider that speaks to a server of one's own."""
    return {
        "openai": dict(model=f"openai/{model}", api_base=f"{url}/v1", encoding_format="float"),
        "hosted_vllm": dict(model=f"hosted_vllm/{model}", api_base=f"{url}/v1"),
        "infinity": dict(model=f"infinity/{model}", api_base=url),
        "cohere": dict(model=f"cohere/{model}", api_base=f"{url}/v2/embed"),
        "jina_ai": dict(model=f"jina_ai/{model}", api_base=f"{url}/v1"),
        "ollama": dict(model=f"ollama/{model}", api_base=url),
        "huggingface": dict(model=f"huggingface/{model}", api_base=f"{url}/embed", input_type="embed"),
    }


def check_litellm(report, server, model, texts, expected):
    import litellm
    litellm.telemetry = False

    def vectors(words):
        return [item["embedding"] for item in litellm.embedding(input=texts, api_key=KEY, **words).data]

    async def vectors_async(words):
        answer = await litellm.aembedding(input=texts, api_key=KEY, **words)
        return [item["embedding"] for item in answer.data]

    for name, words in litellm_ways(server.url, model).items():
        check_rows(report, f"litellm {name}", lambda words=words: vectors(words), expected)
    words = litellm_ways(server.url, model)["ollama"]
    check_rows(report, "litellm ollama, async", lambda: asyncio.run(vectors_async(words)), expected)
    fewer = {"infinity": "dimensions", "cohere": "dimensions", "ollama": "dimensions"}
    short = cut(expected, 64)
    for name in fewer:
        words = litellm_ways(server.url, model)[name] | {"dimensions": 64}
        check_rows(report, f"litellm {name}, 64 dimensions", lambda words=words: vectors(words), short)


def cut(vectors, dim):
    """The first `dim` values of each, of length 1 again, as the server does it."""
    wide = vectors[:, :dim].astype(numpy.float64)
    square_sums = numpy.array([sum(value * value for value in row) for row in wide.tolist()])
    return (wide * (1 / numpy.sqrt(square_sums))[:, None]).astype(numpy.float32)


def check_openai(report, server, model, texts, expected):
    import openai
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY)

    def vectors(**words):
        return [item.embedding for item in client.embeddings.create(model=model, input=texts, **words).data]

    check_rows(report, "openai, as it asks (base64)", vectors, expected)
    check_rows(report, "openai, float", lambda: vectors(encoding_format="float"), expected)


def check_langchain(report, server, model, texts, expected):
    """With its defaults it sends ids of OpenAI's tokenizer: never a wrong vector, but an error that names the switch."""
    import litellm.litellm_core_utils.default_encoding  # noqa: F401  tells tiktoken of litellm's copy of OpenAI's encoding: no network
    import openai
    from langchain_openai import OpenAIEmbeddings
    options = dict(model=model, base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)
    try:
        OpenAIEmbeddings(**options).embed_documents(texts)
        said = "no error"
    except openai.BadRequestError as error:
        said = str(error)
    report.add(holds("langchain-openai with its defaults", "check_embedding_ctx_length=False" in said, said[:160],
                     "400 that names check_embedding_ctx_length"))
    # Ids that the model has too are the ones that could become a wrong vector: these texts, each alone.
    import tiktoken
    encoding, id_count = tiktoken.get_encoding("cl100k_base"), json.loads((MODEL / "config.json").read_text())["vocab_size"]
    shared = [text for text in texts if max(encoding.encode(text)) < id_count]
    answered = []
    for text in shared:
        try:
            OpenAIEmbeddings(**options).embed_documents([text])
            answered.append(text)
        except openai.BadRequestError as error:
            if "check_embedding_ctx_length=False" not in str(error):
                answered.append(f"{text}: {error}")
    report.add(holds("the same for each text whose ids the model has too", shared and not answered,
                     f"{len(shared)} texts, answered {len(answered)} {answered[:1] or ''}", "1 or more, none answered"))
    plain = OpenAIEmbeddings(**options, check_embedding_ctx_length=False)
    check_rows(report, "langchain-openai, told not to", lambda: plain.embed_documents(texts), expected)


def quantized(vectors, kind):
    """Cohere's integer types by numpy, as docs/openapi.yaml has them."""
    if kind in ("binary", "ubinary"):
        bits = numpy.packbits(vectors > 0, axis=-1).astype(int)
        return (bits - 128 if kind == "binary" else bits).tolist()
    wide = vectors.astype(numpy.float64)
    reach = 4 * numpy.sqrt((wide * wide).mean(axis=1, keepdims=True))
    steps = numpy.clip(numpy.floor((wide + reach) / (2 * reach / 255)), 0, 255).astype(int)
    return (steps - 128 if kind == "int8" else steps).tolist()


def check_cohere(report, server, model, texts, expected):
    import cohere
    client = cohere.ClientV2(api_key=KEY, base_url=server.url)
    kinds = ["float", "int8", "uint8", "binary", "ubinary", "base64"]

    def answer(**words):
        return client.embed(model=model, texts=texts, input_type="search_document", **words).embeddings

    check_rows(report, "cohere, float", lambda: answer().float_, expected)
    got = answer(embedding_types=kinds)
    check_rows(report, "cohere, float of six types", lambda: got.float_, expected)
    packed = [struct.unpack(f"<{expected.shape[1]}f", base64.b64decode(text)) for text in got.base64]
    check_rows(report, "cohere, base64", lambda: packed, expected)
    for kind in kinds[1:5]:
        same = getattr(got, kind) == quantized(expected, kind)
        report.add(holds(f"cohere, {kind}", same, "numpy's numbers" if same else "others", "numpy's numbers"))
    beyond = numpy.abs(expected) > 4 * numpy.sqrt((expected.astype(numpy.float64) ** 2).mean(axis=1, keepdims=True))
    report.raw["values beyond the range of int8"] = float(beyond.mean())
    cosines = numpy.array(got.int8, dtype=numpy.float64) + 0.5
    cosines /= numpy.linalg.norm(cosines, axis=1, keepdims=True)
    worst = float((cosines * expected).sum(1).min())
    report.raw["cosine of int8 with float, the worst"] = worst
    report.add(holds("cohere, int8: the worst cosine with float", worst > 0.999, f"{worst:.5f}", "> 0.999"))
    try:
        cohere.ClientV2(api_key=KEY, base_url=server.url).embed(model="none", texts=["a"], input_type="search_query")
        said = "no error"
    except cohere.NotFoundError as error:
        said = f"NotFoundError {error.status_code} {sorted(error.body)}"
    report.add(holds("cohere, unknown model", said == "NotFoundError 404 ['message']", said, "NotFoundError 404 ['message']"))


def check_ollama(report, server, model, texts, expected):
    import ollama
    client = ollama.Client(host=server.url)
    check_rows(report, "ollama, embed", lambda: client.embed(model=model, input=texts).embeddings, expected)
    check_rows(report, "ollama, embed with a tag", lambda: client.embed(model=f"{model}:latest", input=texts).embeddings, expected)
    check_rows(report, "ollama, embeddings (old)", lambda: [client.embeddings(model=model, prompt=text).embedding for text in texts], expected)
    answer = client.embed(model=model, input=texts)
    measured = answer.total_duration > 0 and answer.load_duration == 0 and answer.prompt_eval_count > len(texts)
    report.add(holds("ollama, durations and tokens", measured, f"{answer.total_duration} ns, {answer.prompt_eval_count} tokens"))
    names = [entry.model for entry in client.list().models]
    shown = client.show(model)
    report.add(holds("ollama, list and show", model in names and shown.capabilities == ["embedding"], f"{names} {shown.capabilities}"))
    try:
        client.embed(model="none", input="a")
        said = "no error"
    except ollama.ResponseError as error:
        said = f"{error.status_code} {error.error}"
    report.add(holds("ollama, unknown model", said.startswith("404 "), said, "404"))


def check_huggingface(report, server, texts, expected):
    import huggingface_hub
    for name, path in (("the server's address", ""), ("/embed", "/embed")):
        client = huggingface_hub.InferenceClient(model=server.url + path)
        check_rows(report, f"huggingface_hub with {name}", lambda: numpy.array(client.feature_extraction(texts)), expected)
    client = huggingface_hub.InferenceClient(model=f"{server.url}/similarity")
    got = client.sentence_similarity(texts[0], texts[1:])
    wanted = expected[1:].astype(numpy.float64) @ expected[0].astype(numpy.float64)
    worst = float(numpy.abs(numpy.array(got) - wanted).max())
    report.add(holds("huggingface_hub, similarity: the largest difference", worst < 1e-6, f"{worst:.1e}", "< 1e-6"))


def check_rerank(report, server, model, texts):
    """Each client's ranking against the native route's."""
    import cohere
    import litellm
    status, body = server.call("POST", "/v1/rerank", {"model": model, "query": QUERY, "documents": texts})
    native = json.loads(body)
    report.raw["rerank"] = native
    expected = {item["index"]: float(numpy.float32(item["relevance_score"])) for item in native["results"]}
    report.add(holds("/v1/rerank", status == 200 and len(expected) == len(texts), f"{status}, {len(expected)} scores", f"200, {len(texts)} scores"))
    ways = {"hosted_vllm": server.url, "infinity": server.url, "jina_ai": server.url, "cohere": server.url, "huggingface": server.url}
    for name, base in ways.items():
        def scores(name=name, base=base):
            words = {"return_documents": False} if name == "infinity" else {}  # else it wants bare texts, where vLLM's has objects
            answer = litellm.rerank(model=f"{name}/{model}", query=QUERY, documents=texts, api_base=base, api_key=KEY, **words)
            return [(item["index"], item["relevance_score"]) for item in answer.results]
        check_scores(report, f"litellm {name}, rerank", scores, expected)
    client = cohere.ClientV2(api_key=KEY, base_url=server.url)
    check_scores(report, "cohere, rerank", lambda: [(item.index, item.relevance_score) for item in
                                                    client.rerank(model=model, query=QUERY, documents=texts).results], expected)
    pairs = json.loads(server.call("POST", "/score", {"model": model, "text_1": QUERY, "text_2": texts})[1])["data"]
    check_scores(report, "/score, as vLLM has it", lambda: [(item["index"], item["score"]) for item in pairs], expected)


def measure(report, arguments):
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else litellm fetches a list of prices when it is imported
    texts = [line for line in corpus_lines() if line.strip()][:COUNT]
    file = scratch("house-clients.txt")
    file.write_text("\n".join(texts) + "\n")
    out = scratch("house-clients.npy")
    embed(file, out, "--devices", "2xcpu", "--precision", "fp32")
    expected = numpy.array(load(out), dtype=numpy.float32)
    reranker = write_reranker(scratch("tiny-reranker"), MODEL)
    with serving(MODEL, reranker, "--devices", "2xcpu", "--precision", "fp32", name="house-clients") as server:
        model, ranker = MODEL.name, reranker.name
        check_openai(report, server, model, texts, expected)
        check_langchain(report, server, model, texts, expected)
        check_litellm(report, server, model, texts, expected)
        check_cohere(report, server, model, texts, expected)
        check_ollama(report, server, model, texts, expected)
        check_huggingface(report, server, texts, expected)
        check_rerank(report, server, ranker, texts[:16])
        server.stop()
