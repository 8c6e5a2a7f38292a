"""Makes the first calls of a Python program that is set up as docs/tasks/tools.md says: by variables, and by the code in CODE.

Prints {"calls": {label: {"result": ...} or {"error": string}}, "missing": []}.
"""

import json
import os

PROGRAM, CODE, ENDPOINT = (os.environ.get(name, "") for name in ("PROGRAM", "CODE", "ENDPOINT"))
calls = {}


def call(label, function, *arguments):
    """Makes a call and keeps its outcome."""
    try:
        function(*arguments)
        calls[label] = {"result": "ok"}
    except Exception as error:  # whatever the program makes of a refusal
        calls[label] = {"error": f"{type(error).__name__}: {error}"}


if PROGRAM == "sdk":
    import runpod

    exec(CODE or "runpod.api_key = 'key_of_nobody'")
    if "endpoint_url_base" not in CODE:
        call("pods", runpod.get_pods)
        call("gpus", runpod.get_gpus)
    call("health", runpod.Endpoint(ENDPOINT).health)
elif PROGRAM == "openai":
    import openai

    client = openai.OpenAI(**({"base_url": CODE.replace("ENDPOINT", ENDPOINT)} if CODE else {}), max_retries=0)
    call("models", client.models.list)
elif PROGRAM == "prices":
    from gpuhunt.providers import runpod

    exec(CODE)
    call("prices", runpod.RunpodProvider().get)
print(json.dumps({"calls": calls, "missing": []}))
