"""Drives the endpoint clients of the Python SDK, of whatever version is installed.

Makes the endpoint by v2, and prints {"calls": {name: {"result": ...} or {"error":
string}}, "missing": [...]}: the calls of both clients with what they returned, and
their public methods that this script does not know.
"""

import asyncio
import itertools
import json
import os
import sys
import urllib.request

GATEWAY, CONTROL, KEY = (os.environ[name] for name in ("GATEWAY", "CONTROL", "KEY"))
os.environ["RUNPOD_ENDPOINT_BASE_URL"] = GATEWAY + "/v2"  # versions that have the setting

import aiohttp  # noqa: E402
import runpod  # noqa: E402 (reads the environment)

stdout, sys.stdout = sys.stdout, sys.stderr  # old versions print what they do
runpod.api_key = KEY
runpod.endpoint_url_base = GATEWAY + "/v2"
METHODS = {"run", "run_sync", "status", "output", "stream", "cancel", "health", "purge_queue"}
calls = {}
lasting = {"emulator": {"delay_ms": 3600000}}
yielding = {"emulator": {"chunks": ["a", {"b": 2}, "c"], "delay_ms": 180000}}  # 3 s of this clock


def v2(method, path, body=None):
    """Makes a call to the v2 API and returns its decoded answer."""
    request = urllib.request.Request(GATEWAY + path, method=method, data=body and json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + KEY)
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def call(label, owner, name, /, *arguments, **options):
    """Makes a call if this version has it, and keeps what it returned."""
    method = getattr(owner, name, None)
    if method is None:
        return None
    try:
        result = method(*arguments, **options)
        if name == "stream":
            result = list(itertools.islice(result, 2))
    except Exception as error:  # whatever the package makes of a refusal
        calls[label] = {"error": f"{type(error).__name__}: {error}"}
        return None
    calls[label] = {"result": None if name == "run" else result}
    return result


async def acall(label, owner, name, /, *arguments):
    """Is call for a coroutine or an asynchronous generator."""
    method = getattr(owner, name, None)
    if method is None:
        return None
    try:
        if name == "stream":
            parts = method(*arguments)  # in old versions they end with the job, whatever is left
            result = [await anext(parts), await anext(parts)]
            await parts.aclose()
        else:
            result = await method(*arguments)
    except Exception as error:
        calls[label] = {"error": f"{type(error).__name__}: {error}"}
        return None
    calls[label] = {"result": None if name == "run" else result}
    return result


async def asynchronous(endpoint_id):
    """Makes every call of the asynchronous client."""
    async with aiohttp.ClientSession() as session:
        endpoint = runpod.AsyncioEndpoint(endpoint_id, session)
        job = await acall("async run", endpoint, "run", {"x": [1, 2.5]})
        await acall("async output", job, "output", *[30] * (runpod.AsyncioJob.output.__code__.co_argcount - 1))
        await acall("async status", job, "status")
        await acall("async stream", await acall("async run to stream", endpoint, "run", yielding), "stream")
        await acall("async cancel", await acall("async run to cancel", endpoint, "run", lasting), "cancel")
        await acall("async purge queue", endpoint, "purge_queue")
        await acall("async health", endpoint, "health")


endpoint_id = v2("POST", "/v2/serverless", {
    "name": "worker", "templateId": "tplworker1", "gpu": {"pools": ["ADA_24"]}, "workers": {"max": 2},
    "scaling": {"type": "QUEUE_DELAY", "queueDelay": 1},
})["id"]
endpoint = runpod.Endpoint(endpoint_id)
job = call("run", endpoint, "run", {"x": [1, 2.5]})
call("output", job, "output", timeout=30)
call("status", job, "status")
call("run sync", endpoint, "run_sync", {"y": "\u00e4"})
call("run sync that fails", endpoint, "run_sync", {"emulator": {"error": "out of memory"}})
call("stream", call("run to stream", endpoint, "run", yielding), "stream")
call("cancel", call("run to cancel", endpoint, "run", lasting), "cancel")
call("purge queue", endpoint, "purge_queue")
call("health", endpoint, "health")
call("denied", endpoint, "run_sync", {"max_tokens": 65})
call("no such endpoint", runpod.Endpoint("nothing"), "run", {"x": 1})
asyncio.run(asynchronous(endpoint_id))
runpod.api_key = "key_of_a_stranger"
call("wrong key", runpod.Endpoint(endpoint_id), "run", {"x": 1})
v2("DELETE", f"/v2/serverless/{endpoint_id}")

from runpod.endpoint import Job  # noqa: E402

public = {name for owner in (runpod.Endpoint, runpod.AsyncioEndpoint, runpod.AsyncioJob, Job) for name in vars(owner) if not name.startswith("_")}
print(json.dumps({"calls": calls, "missing": sorted(public - METHODS)}), file=stdout)
