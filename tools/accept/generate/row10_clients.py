"""The clients of other servers, each as its users call it for a reply."""

import asyncio
import json

from generate.replies import skip_reason
from generate.streams import MODEL, decoder_server
from report import holds

TITLE = "openai (streamed, async, stop, logprobs, n, best_of, several prompts), langchain-openai, litellm, ollama: the same reply"
IS_TIMED = False

MESSAGES = [{"role": "user", "content": "Name three colours."}]
WORDS = dict(temperature=0, max_tokens=24)
PROMPTS = ["The sky is", "Once upon a time", "Two and two make"]


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

    check(report, "openai", lambda: client.chat.completions.create(**words).choices[0].message.content, expected)
    check(report, "openai, streamed", streamed, expected)
    check(report, "openai, async", lambda: asyncio.run(asynchronous()), expected)
    check(report, "openai, stop", stopped, expected)


def text_of(tokens):
    """The text that the bytes of tokens are; a special token has none."""
    return b"".join(bytes(token.bytes or []) for token in tokens).decode()


def check_choices(report, client, expected):
    words = dict(model=MODEL, messages=MESSAGES, **WORDS)
    seeded = dict(words, temperature=1, seed=7)

    def first_of_two():
        answer = client.chat.completions.create(n=2, **words)
        assert [choice.index for choice in answer.choices] == [0, 1]
        alone = client.chat.completions.create(**words).usage
        assert answer.usage.prompt_tokens == alone.prompt_tokens, "the prompt counts once"
        assert answer.usage.completion_tokens == 2 * alone.completion_tokens
        return answer.choices[0].message.content

    def seeded_twice():
        """The first is that of a request for one, and all of them are the same again."""
        alone = client.chat.completions.create(**seeded).choices[0].message.content
        both = [[choice.message.content for choice in client.chat.completions.create(n=3, **seeded).choices] for _ in range(2)]
        assert both[0][0] == alone, (both[0], alone)
        return both[0] == both[1] and len(set(both[0])) > 1

    def streamed():
        texts, ends, usages = ["", ""], [[], []], []
        for part in client.chat.completions.create(n=2, stream=True, stream_options={"include_usage": True}, **words):
            usages += [part.usage] if part.usage else []
            for choice in part.choices:
                texts[choice.index] += choice.delta.content or ""
                ends[choice.index] += [choice.finish_reason] if choice.finish_reason else []
        assert len(usages) == 1 and [len(reasons) for reasons in ends] == [1, 1], (usages, ends)
        return texts[1]

    def best():
        """The candidates of a seed are known from `n`, and so is the one with the best mean."""
        ask = dict(model=MODEL, prompt="The sky is", temperature=1, seed=7, max_tokens=12, logprobs=0)
        candidates = client.completions.create(n=4, **ask)
        mean = lambda choice: sum(choice.logprobs.token_logprobs) / len(choice.logprobs.token_logprobs)
        answer = client.completions.create(best_of=4, **ask)
        assert answer.usage.completion_tokens == candidates.usage.completion_tokens, "all that was computed"
        return answer.choices[0].text == max(candidates.choices, key=mean).text

    def prompts():
        """Several prompts are answered as each would be alone, in their order."""
        ask = dict(model=MODEL, temperature=1, seed=7, max_tokens=12, n=2)
        alone = [client.completions.create(prompt=prompt, **ask) for prompt in PROMPTS]
        answer = client.completions.create(prompt=PROMPTS, **ask)
        assert [choice.index for choice in answer.choices] == list(range(2 * len(PROMPTS)))
        assert answer.usage.total_tokens == sum(one.usage.total_tokens for one in alone)
        return [choice.text for choice in answer.choices] == [choice.text for one in alone for choice in one.choices]

    check(report, "openai, several prompts", prompts, True)
    check(report, "openai, n = 2", first_of_two, expected)
    check(report, "openai, n = 3, seeded", seeded_twice, True)
    check(report, "openai, n = 2, streamed", streamed, expected)
    check(report, "openai, best_of", best, True)


def check_logprobs(report, client, expected):
    words = dict(model=MODEL, messages=MESSAGES, **WORDS)

    def whole():
        choice = client.chat.completions.create(logprobs=True, top_logprobs=2, **words).choices[0]
        for token in choice.logprobs.content:
            assert len(token.top_logprobs) == 2 and token.logprob <= 0, token
            assert token.top_logprobs[0].logprob == token.logprob, f"greedy is the likeliest: {token}"
        return text_of(choice.logprobs.content)

    def streamed():
        tokens = []
        for part in client.chat.completions.create(logprobs=True, stream=True, **words):
            for choice in part.choices:
                tokens += choice.logprobs.content if choice.logprobs else []
        return text_of(tokens)

    def lists():
        answer = client.completions.create(model=MODEL, prompt="The sky is", temperature=0, max_tokens=12, logprobs=2)
        choice = answer.choices[0]
        logprobs, at = choice.logprobs, 0
        assert len(logprobs.tokens) == answer.usage.completion_tokens
        for token, offset, logprob, top in zip(logprobs.tokens, logprobs.text_offset, logprobs.token_logprobs, logprobs.top_logprobs, strict=True):
            assert choice.text[offset:offset + len(token)] == token and offset == at, (token, offset)
            assert top[token] == logprob == max(top.values())
            at += len(token)
        return at == len(choice.text)

    check(report, "openai, logprobs", whole, expected)
    check(report, "openai, logprobs, streamed", streamed, expected)
    check(report, "openai, logprobs of a completion", lists, True)


def check_langchain(report, url, expected):
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI, OpenAI
    model = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, **WORDS)
    check(report, "langchain-openai", lambda: model.invoke("Name three colours.").content, expected)
    check(report, "langchain-openai, streamed", lambda: "".join(part.content for part in model.stream("Name three colours.")), expected)

    def with_logprobs():
        reply = model.bind(logprobs=True, top_logprobs=1).invoke("Name three colours.")
        return "".join(token["token"] for token in reply.response_metadata["logprobs"]["content"])

    def second_of_two():
        two = ChatOpenAI(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, n=2, **WORDS)
        return two.generate([[HumanMessage("Name three colours.")]]).generations[0][1].text

    def best_completion():
        completion = OpenAI(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, n=2, best_of=3, seed=7, **WORDS)
        return len(completion.generate(["The sky is"]).generations[0])

    def batch():
        completion = OpenAI(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, **WORDS)
        return [replies[0].text for replies in completion.generate(PROMPTS).generations] == [completion.invoke(prompt) for prompt in PROMPTS]

    check(report, "langchain-openai, several prompts", batch, True)
    check(report, "langchain-openai, logprobs", with_logprobs, expected)
    check(report, "langchain-openai, n = 2", second_of_two, expected)
    check(report, "langchain-openai, best_of", best_completion, 2)


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
    prompt = MESSAGES[0]["content"]
    chat = dict(model=MODEL, messages=MESSAGES, options=options)
    generate = dict(model=MODEL, prompt=prompt, options=options)

    def text_and_end(parts, text_of_part):
        """The text of a stream whose last part alone says that it is done, and how many tokens there were."""
        parts = list(parts)
        *before, last = parts
        assert last.done and last.done_reason in ("stop", "length") and not any(part.done for part in before), last
        assert last.eval_count > 0 and last.prompt_eval_count > 0 and last.total_duration >= last.eval_duration > 0, last
        return "".join(text_of_part(part) for part in parts)

    async def asynchronous():
        return (await ollama.AsyncClient(host=url).chat(**chat)).message.content

    def stopped():
        stop = expected[len(expected) // 2:len(expected) // 2 + 3]
        got = client.chat(**chat | {"options": options | {"stop": [stop]}})
        assert got.done_reason == "stop", got.done_reason
        return got.message.content + expected[expected.index(stop):]

    def raw():
        """A raw prompt is a completion: no template is put around it."""
        import openai
        other = openai.OpenAI(base_url=f"{url}/v1", api_key="none").completions.create(model=MODEL, prompt="The sky is", **WORDS)
        return client.generate(model=MODEL, prompt="The sky is", raw=True, options=options).response == other.choices[0].text

    def refused():
        try:
            client.chat(format="json", **chat)
        except ollama.ResponseError as error:
            return error.status_code == 400 and "format" in error.error
        return False

    check(report, "ollama, chat", lambda: client.chat(**chat).message.content, expected)
    check(report, "ollama, chat streamed", lambda: text_and_end(client.chat(stream=True, **chat), lambda part: part.message.content), expected)
    check(report, "ollama, chat async", lambda: asyncio.run(asynchronous()), expected)
    check(report, "ollama, stop", stopped, expected)
    check(report, "ollama, generate", lambda: client.generate(**generate).response, expected)
    check(report, "ollama, generate streamed", lambda: text_and_end(client.generate(stream=True, **generate), lambda part: part.response), expected)
    check(report, "ollama, generate raw", raw, True)
    check(report, "ollama, a load", lambda: client.generate(model=MODEL).done_reason, "load")
    check(report, "ollama, what is not done", refused, True)
    check(report, "ollama, list and show", lambda: (MODEL in [entry.model for entry in client.list().models], client.show(MODEL).capabilities),
          (True, ["completion"]))


def measure(report, arguments):
    import openai
    with decoder_server("--devices", "1xcpu", name="generate-clients") as server:
        status, body = server.call("POST", "/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, **WORDS}, timeout_s=120)
        assert status == 200, body
        expected = json.loads(body)["choices"][0]["message"]["content"]
        report.raw["reply"] = expected
        check_openai(report, server.url, expected)
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none")
        check_choices(report, client, expected)
        check_logprobs(report, client, expected)
        check_langchain(report, server.url, expected)
        check_litellm(report, server.url, expected)
        check_ollama(report, server.url, expected)
