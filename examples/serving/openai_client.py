"""The official openai package against a running `muster serve`: one text, a batch, base64, fewer dimensions, async, errors.

    muster serve sentence-transformers/all-MiniLM-L6-v2 &
    pip install openai
    python openai_client.py http://127.0.0.1:8000
"""

import asyncio
import sys

import openai

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
OPTIONS = {"base_url": f"{URL}/v1", "api_key": "none"}  # without a keys file any key will do

client = openai.OpenAI(**OPTIONS)
model = client.models.list().data[0].id
print("model:", model)

# The client asks for base64 by itself where it can, and gives floats all the same.
answer = client.embeddings.create(model=model, input="The quick brown fox.")
print("one text:", len(answer.data[0].embedding), "values,", answer.usage.total_tokens, "tokens")

batch = client.embeddings.create(model=model, input=["first", "second", ""], encoding_format="float")
print("a batch:", [item.index for item in batch.data])

short = client.embeddings.create(model=model, input="The quick brown fox.", dimensions=16)
print("cut to 16, length 1 again:", round(sum(value**2 for value in short.data[0].embedding), 4))

# What muster adds goes into extra_body.
query = client.embeddings.create(model=model, input="a query", extra_body={"lane": "interactive", "timeout_ms": 2000})
print("with a deadline:", len(query.data[0].embedding))


async def many():
    async with openai.AsyncOpenAI(**OPTIONS) as asynchronous:
        return await asyncio.gather(*(asynchronous.embeddings.create(model=model, input=f"text {i}") for i in range(20)))


print("at once:", len(asyncio.run(many())))

for name, fields in {"an unknown model": {"model": "no-such-model", "input": "a"}, "an empty list": {"model": model, "input": []}}.items():
    try:
        client.with_options(max_retries=0).embeddings.create(**fields)
    except openai.APIStatusError as error:
        print(f"{name}: {error.status_code} {error.code}: {error.body['message']}")
