"""langchain-openai against a running `muster serve`.

    muster serve sentence-transformers/all-MiniLM-L6-v2 &
    pip install langchain-openai
    python langchain_client.py http://127.0.0.1:8000

check_embedding_ctx_length=False is needed: without it langchain-openai sends token ids of OpenAI's own tokenizer, which mean nothing
to another model. muster answers those that the model does not have with 400 and names the switch.
"""

import asyncio
import sys

from langchain_openai import OpenAIEmbeddings

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
MODEL = sys.argv[2] if len(sys.argv) > 2 else "all-MiniLM-L6-v2"

embeddings = OpenAIEmbeddings(model=MODEL, base_url=f"{URL}/v1", api_key="none", check_embedding_ctx_length=False)
documents = embeddings.embed_documents(["A gathering of troops.", "A kind of mustard."])
print("documents:", len(documents), "of", len(documents[0]), "values")

query = embeddings.embed_query("What is a muster?")
scores = [sum(a * b for a, b in zip(query, document)) for document in documents]
print("nearest:", scores.index(max(scores)))

print("async:", len(asyncio.run(embeddings.aembed_documents(["one", "two", "three"]))))
