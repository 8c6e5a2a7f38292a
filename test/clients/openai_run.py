"""Drives the OpenAI client against a language-model endpoint, through the gateway.

Makes the endpoint by v2, and prints {"calls": {name: {"result": ...} or {"error":
string}}, "missing": []}.
"""

import json
import os
import urllib.request

import openai

GATEWAY, KEY, RUN = (os.environ[name] for name in ("GATEWAY", "KEY", "RUN"))
calls = {}


def v2(method, path, body=None):
    """Makes a call to the v2 API and returns its decoded answer."""
    request = urllib.request.Request(GATEWAY + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + KEY)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def call(label, function, **arguments):
    """Makes a call and keeps what it returned, as JSON knows it."""
    try:
        result = function(**arguments)
        if isinstance(result, openai.Stream):
            result = {"chunks": [chunk.to_dict() for chunk in result]}
        calls[label] = {"result": result if isinstance(result, dict) else result.to_dict()}
    except openai.OpenAIError as error:
        calls[label] = {"error": f"{type(error).__name__}: {error}"}


endpoint = v2("POST", "/v2/serverless", {
    "name": "llm", "templateId": "tplworker1", "gpu": {"pools": ["ADA_24"]}, "workers": {"max": 1},
    "scaling": {"type": "QUEUE_DELAY", "queueDelay": 1},
})["id"]
address = f"{RUN}/v2/{endpoint}/openai/v1"
client = openai.OpenAI(base_url=address, api_key=KEY, max_retries=0)
messages = [{"role": "user", "content": "one two three"}]
call("models", lambda: {"data": [model.to_dict() for model in client.models.list()]})
call("chat", client.chat.completions.create, model="small-chat", messages=messages)
call("chat stream", client.chat.completions.create, model="small-chat", messages=messages, stream=True)
call("completion", client.completions.create, model="small-chat", prompt="one two three", max_tokens=8)
call("completion stream", client.completions.create, model="small-chat", prompt="one two three", stream=True)
call("no messages", client.chat.completions.create, model="small-chat", messages=[])
call("wrong key", openai.OpenAI(base_url=address, api_key="key_nobody_has", max_retries=0).chat.completions.create, model="small-chat", messages=messages)
v2("DELETE", f"/v2/serverless/{endpoint}")
print(json.dumps({"calls": calls, "missing": []}))
