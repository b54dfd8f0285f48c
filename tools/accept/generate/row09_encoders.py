"""Encoders: a long text and a short one on one core and on two, and int8 against ONNX Runtime's int8."""

import contextlib
import http.client
import json
import os
import statistics
import time

import engine_bench
import run_interleaved
import texts
import vectors
from generate import long_encoder, speeds
from programs import MODEL, embed, scratch
from report import at_least, holds
from serve import load
from serve.running import serving
from spine import row09_engine_speed as against_onnx

TITLE = "Encoders: 4,000 and 16 tokens on one core and two, the same bits; int8 against ONNX Runtime int8"
IS_TIMED = True

WORDS = ("time", "people", "way", "water", "day", "part", "work", "place", "year", "house", "world", "school", "night", "river")
# Tokens of the text, requests of a turn, and how many times as fast two cores must be.
TEXTS = ((4000, 2, 1.7), (16, 100, 1.2))
INT8_RATIO, INT8_COSINE, INT8_TEXTS = 1.15, 0.995, 2000
NAME = "long"


def skip_reason():
    if not (MODEL / "model.safetensors").exists():
        return f"{MODEL.name} is not there: ./quickstart fetches it"
    return None if len(os.sched_getaffinity(0)) >= 2 else "this machine has one core"


def text_of(tokens):
    """Words that are a token each, between the two that the model adds."""
    return " ".join(WORDS[(i * i + i // 7) % len(WORDS)] for i in range(tokens - 2))


def ask(server, text, count):
    """So many requests one after the other: median seconds, the vector as it was sent, tokens as the server counts them."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    body, seconds = json.dumps({"model": NAME, "input": text, "encoding_format": "base64"}), []
    try:
        for _ in range(count):
            start = time.perf_counter()
            connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
            seconds.append(time.perf_counter() - start)
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {data[:300]!r}")
    finally:
        connection.close()
    answer = json.loads(data)
    return {"seconds": statistics.median(seconds), "vector": answer["data"][0]["embedding"], "tokens": answer["usage"]["prompt_tokens"]}


def encoder(cores, precision):
    return serving(f"{NAME}={long_encoder.make()}", "--devices", "1xcpu", "--cores-per-device", cores, "--precision", precision,
                   "--no-cache-enabled", name=f"generate-encoder-{cores}")


def cores(report, rounds):
    with contextlib.ExitStack() as stack:
        servers = {1: stack.enter_context(encoder(1, "auto"))}
        precision = load.served_precision(servers[1])
        servers[2] = stack.enter_context(encoder(2, precision))
        for tokens, count, factor in TEXTS:
            text = text_of(tokens)
            for server in servers.values():
                ask(server, text, 1)
            samples = run_interleaved.interleave({f"{n} cores": (lambda s=server: ask(s, text, count)) for n, server in servers.items()}, rounds)
            told = {one["tokens"] for rows in samples.values() for one in rows}
            report.add(holds(f"the text of {tokens:,} tokens has them", told == {tokens}, str(sorted(told)), str(tokens)))
            found = {one.pop("vector") for rows in samples.values() for one in rows}
            report.add(holds(f"{tokens:,} tokens, {precision}: one core and two", len(found) == 1, f"{len(found)} vectors", "the same bits"))
            report.raw[f"{tokens} tokens"] = samples
            alone, both = (run_interleaved.median(samples[f"{n} cores"], "seconds") for n in (1, 2))
            report.add(at_least(f"{tokens:,} tokens, {precision}: two cores over one ({both * 1e3:.2f} ms against {alone * 1e3:.2f})",
                                run_interleaved.ratio(samples, "1 cores", "2 cores", "seconds"), factor, unit="x"))


def int8_speed(report, rounds):
    core, folder = min(os.sched_getaffinity(0)), against_onnx.onnx_models()
    with contextlib.ExitStack() as stack:
        theirs = stack.enter_context(against_onnx.onnx_runtime(folder / "int8.onnx", core))
        ours = stack.enter_context(engine_bench.serve("int8", {core}))
        for shape in against_onnx.SHAPES:
            for server in (ours, theirs):
                server.ask(shape)
            samples = run_interleaved.interleave({"ours": lambda: against_onnx.rate(ours, shape),
                                                  "onnx": lambda: against_onnx.rate(theirs, shape)}, rounds)
            report.raw[f"int8 {shape}"] = samples
            report.add(at_least(f"{shape}, one core: int8 over ONNX Runtime's int8 ({speeds.shown(samples, 'ours', 'onnx')})",
                                run_interleaved.ratio(samples, "ours", "onnx", "tokens_per_s"), INT8_RATIO, unit="x"))


def int8_cosine(report):
    source, found = texts.sample_file(INT8_TEXTS), {}
    for precision in ("fp32", "int8"):
        out = scratch(f"encoder-{precision}.npy")
        embed(source, out, "--devices", "1xcpu", "--precision", precision)
        found[precision] = vectors.load(out)
    cosines = vectors.cosines(found["int8"], found["fp32"])
    report.raw["int8 cosine"] = {"mean": float(cosines.mean()), "least": float(cosines.min())}
    report.add(at_least(f"int8: mean cosine to fp32, {INT8_TEXTS:,} texts (the least {cosines.min():.4f})", float(cosines.mean()), INT8_COSINE,
                        digits=4))


def refusal():
    """What muster says where it has no int8 for encoders; None where it has."""
    try:
        embed(texts.sample_file(8), scratch("encoder-int8.npy"), "--devices", "1xcpu", "--precision", "int8")
    except RuntimeError as error:
        return " ".join(str(error).split())[-300:]
    return None


def measure(report, arguments):
    cores(report, arguments.rounds)
    refused = refusal()
    if refused:
        for shape in against_onnx.SHAPES:
            report.add(holds(f"{shape}, one core: int8 over ONNX Runtime's int8", False, refused, f">= {INT8_RATIO}x"))
        report.add(holds("int8: mean cosine to fp32", False, refused, f">= {INT8_COSINE}"))
        return
    int8_cosine(report)
    int8_speed(report, arguments.rounds)
