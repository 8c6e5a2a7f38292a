"""Reads streamed chats with the OpenAI client, which closes the connection at "data: [DONE]".

Prints {"texts": [string]}.
"""

import json
import os

import openai

client = openai.OpenAI(base_url=f"{os.environ['GATEWAY']}/v2/llm/openai/v1", api_key=os.environ["KEY"], max_retries=0)
texts = []
for _ in range(2):
    stream = client.chat.completions.create(model="llm", max_tokens=100, messages=[{"role": "user", "content": "hi"}], stream=True)
    texts.append("".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices))
print(json.dumps({"texts": texts}))
