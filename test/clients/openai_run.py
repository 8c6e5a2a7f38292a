"""Drives the OpenAI client against a language-model endpoint, through the gateway.

Makes the endpoint by v2, and prints {"calls": {name: {"result": ...} or {"error":
string}}, "missing": []}.
"""

import json
import os
import urllib.request

import openai

GATEWAY, CONTROL, KEY, ONCE, RUN = (os.environ[name] for name in ("GATEWAY", "CONTROL", "KEY", "ONCE", "RUN"))
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
    except Exception as error:  # what the package makes of a refusal, and of nonsense
        calls[label] = {"error": f"{type(error).__name__}: {error}"}


endpoint = v2("POST", "/v2/serverless", {
    "name": "llm", "templateId": "tplworker1", "gpu": {"pools": ["ADA_24"]}, "workers": {"max": 1},
    "scaling": {"type": "QUEUE_DELAY", "queueDelay": 1},
})["id"]


def client(key=KEY, endpoint=endpoint, max_retries=0):
    """A client of the endpoint's language model."""
    return openai.OpenAI(base_url=f"{RUN}/v2/{endpoint}/openai/v1", api_key=key, max_retries=max_retries)


def fail(**fault):
    """Has the platform's next calls fail."""
    request = urllib.request.Request(CONTROL + "/faults", json.dumps(fault).encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=10).close()


chat = {"model": "small-chat", "messages": [{"role": "user", "content": "one two three"}]}
own = client()
call("models", lambda: {"data": [model.to_dict() for model in own.models.list()]})
call("chat", own.chat.completions.create, **chat)
call("chat stream", own.chat.completions.create, **chat, stream=True)
call("chat with everything", own.chat.completions.create, **chat, max_tokens=64, temperature=0.5, top_p=1, n=1, stop=["\n"], seed=7, user="u")
call("completion", own.completions.create, model="small-chat", prompt="one two three", max_tokens=8)
call("completion stream", own.completions.create, model="small-chat", prompt="one two three", stream=True)
call("parts", own.chat.completions.create, model="small-chat", messages=[{"role": "user", "content": [{"type": "text", "text": "one two"}]}])
tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
called = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
call("a tool", own.chat.completions.create, **chat, tools=[tool], tool_choice="required")
call("a tool's answer", own.chat.completions.create, model="small-chat", tools=[tool], messages=[
    {"role": "assistant", "content": None, "tool_calls": [called]}, {"role": "tool", "tool_call_id": "c", "content": "rain"},
])
call("an object", own.chat.completions.create, **chat, response_format={"type": "json_object"})
call("prompts", own.completions.create, model="small-chat", prompt=["one", "two"])
call("embeddings", own.embeddings.create, model="small-chat", input=["one two", "three"])  # in base64, which the client reads

call("no messages", own.chat.completions.create, model="small-chat", messages=[])
call("no such endpoint", client(endpoint="nothing").chat.completions.create, **chat)
call("wrong key", client(key="key_of_a_stranger").chat.completions.create, **chat)
call("too many tokens", own.chat.completions.create, **chat, max_tokens=65)
call("too many tokens, streamed", own.chat.completions.create, **chat, max_tokens=65, stream=True)
call("too many tokens to complete", own.completions.create, model="small-chat", prompt="one", max_tokens=65)
call("a model that is not allowed", own.chat.completions.create, **chat | {"model": "large-chat"})
call("first of one a minute", client(key=ONCE).models.list)
call("second of one a minute", client(key=ONCE).models.list)
fail(kind="ratelimit", operation="chatCompletions", times=1)
call("the platform is busy", own.chat.completions.create, **chat)
fail(kind="ratelimit", operation="chatCompletions", times=1)
call("the platform was busy", client(max_retries=2).chat.completions.create, **chat)
fail(kind="status", status=500, operation="chatCompletions", times=1)
call("the platform fails", own.chat.completions.create, **chat)
fail(kind="drop", operation="chatCompletions", times=1)
call("the platform hangs up", own.chat.completions.create, **chat)
fail(kind="malformed", operation="chatCompletions", times=1)
call("the platform talks nonsense", own.chat.completions.create, **chat)
v2("DELETE", f"/v2/serverless/{endpoint}")
print(json.dumps({"calls": calls, "missing": []}))
