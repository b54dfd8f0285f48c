"""The clients of other servers, each as its users call it for a reply."""

import asyncio
import json

from generate.replies import skip_reason
from generate.streams import MODEL, decoder_server
from report import holds

TITLE = "openai (streamed, async, stop, logprobs), langchain-openai, litellm, ollama: the same reply"
IS_TIMED = False

MESSAGES = [{"role": "user", "content": "Name three colours."}]
WORDS = dict(temperature=0, max_tokens=24)


def check(report, name, make, expected):
    """`make` gives a text; a client that fails is a miss of its own."""
    try:
        got = make()
    except Exception as error:  # whatever a client raises
        report.raw[name] = repr(error)
        report.add(holds(name, False, f"{type(error).__name__}: {str(error)[:200]}", "the reply"))
        return
    report.add(holds(name, got == expected, "the reply" if got == expected else f"{got!r}", "the reply"))


def check_openai(report, url, expected):
    import openai
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    words = dict(model=MODEL, messages=MESSAGES, **WORDS)

    def streamed():
        parts = list(client.chat.completions.create(stream=True, stream_options={"include_usage": True}, **words))
        assert parts[-1].usage.completion_tokens > 0
        return "".join(part.choices[0].delta.content or "" for part in parts if part.choices)

    async def asynchronous():
        other = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
        return (await other.chat.completions.create(**words)).choices[0].message.content

    def stopped():
        stop = expected[len(expected) // 2:len(expected) // 2 + 3]
        got = client.chat.completions.create(stop=[stop], **words).choices[0]
        assert got.finish_reason == "stop", got.finish_reason
        return got.message.content + expected[expected.index(stop):]

    def with_logprobs():
        choice = client.chat.completions.create(logprobs=True, top_logprobs=2, **words).choices[0]
        assert all(len(token.top_logprobs) == 2 and token.logprob <= 0 for token in choice.logprobs.content)
        return "".join(token.token for token in choice.logprobs.content)

    def first_of_two():
        choices = client.chat.completions.create(n=2, **words).choices
        assert [choice.index for choice in choices] == [0, 1]
        return choices[0].message.content

    check(report, "openai", lambda: client.chat.completions.create(**words).choices[0].message.content, expected)
    check(report, "openai, streamed", streamed, expected)
    check(report, "openai, async", lambda: asyncio.run(asynchronous()), expected)
    check(report, "openai, stop", stopped, expected)
    check(report, "openai, logprobs", with_logprobs, expected)
    check(report, "openai, n = 2", first_of_two, expected)


def check_langchain(report, url, expected):
    from langchain_openai import ChatOpenAI
    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, **WORDS)
    check(report, "langchain-openai", lambda: model.invoke("Name three colours.").content, expected)
    check(report, "langchain-openai, streamed", lambda: "".join(part.content for part in model.stream("Name three colours.")), expected)


def check_litellm(report, url, expected):
    import litellm
    litellm.telemetry = False
    for name, words in {"openai": dict(model=f"openai/{MODEL}", api_base=f"{url}/v1"),
                        "hosted_vllm": dict(model=f"hosted_vllm/{MODEL}", api_base=f"{url}/v1"),
                        "ollama_chat": dict(model=f"ollama_chat/{MODEL}", api_base=url)}.items():
        check(report, f"litellm {name}", lambda words=words: litellm.completion(
            messages=MESSAGES, api_key="none", **WORDS, **words).choices[0].message.content, expected)


def check_ollama(report, url, expected):
    import ollama
    client = ollama.Client(host=url)
    options = {"temperature": 0, "num_predict": WORDS["max_tokens"]}
    check(report, "ollama, chat", lambda: client.chat(model=MODEL, messages=MESSAGES, options=options).message.content, expected)
    check(report, "ollama, chat streamed", lambda: "".join(
        part.message.content for part in client.chat(model=MODEL, messages=MESSAGES, options=options, stream=True)), expected)
    check(report, "ollama, generate", lambda: client.generate(model=MODEL, prompt="Name three colours.", options=options).response, expected)


def measure(report, arguments):
    with decoder_server("--devices", "1xcpu", name="generate-clients") as server:
        status, body = server.call("POST", "/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, **WORDS}, timeout_s=120)
        assert status == 200, body
        expected = json.loads(body)["choices"][0]["message"]["content"]
        report.raw["reply"] = expected
        check_openai(report, server.url, expected)
        check_langchain(report, server.url, expected)
        check_litellm(report, server.url, expected)
        check_ollama(report, server.url, expected)
