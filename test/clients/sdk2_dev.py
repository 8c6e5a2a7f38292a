"""Drives a development session of the next Python SDK: endpoints for the functions of an app, made, changed and
deleted, and the pod of a task.

Prints {"calls": {name: {"result": ...} or {"error": string}}, "missing": []}.
"""

import asyncio
import json
import os
import sys

os.environ["RUNPOD_API_BASE_URL"] = os.environ["GATEWAY"]
os.environ["RUNPOD_API_KEY"] = os.environ["KEY"]

import runpod  # noqa: E402 (reads the environment)
from runpod.apps import App  # noqa: E402
from runpod.apps.api import AppsApiClient  # noqa: E402
from runpod.apps.dev import DevSession  # noqa: E402
from runpod.apps.tasks import TaskExecution  # noqa: E402

stdout, sys.stdout = sys.stdout, sys.stderr
runpod.api_key = os.environ["KEY"]
calls = {}


def app(idle):
    declared = App("probe")

    @declared.queue(name="on-gpu", gpu="NVIDIA L4", image="img:1", workers=(0, 1), idle_timeout=idle)
    def on_gpu(x):
        return x

    @declared.queue(name="on-cpu", cpu="cpu3c-2-4", image="img:1", workers=(0, 1), datacenter="EU-RO-1")
    def on_cpu(x):
        return x

    @declared.task(name="job", gpu="NVIDIA L4", image="img:1")
    def job(x):
        return x

    return declared


async def call(label, work):
    try:
        await work
        listed = await AppsApiClient().list_my_endpoints()
    except Exception as error:
        calls[label] = {"error": f"{type(error).__name__}: {error}"}
        return
    calls[label] = {"result": {e["name"]: {"image": e["image"], "idle": e["workers"].get("idleTimeout"), "max": e["workers"]["max"]} for e in listed}}


async def main():
    first = app(60)
    session = DevSession([first])
    await call("start", session.start())
    await call("refresh", session.refresh([app(90)]))
    await call("stop", session.stop())
    task = TaskExecution(first.resources["job"].spec)
    await call("task", task.start())
    if task.pod_id:
        await call("end of the task", task.terminate())


asyncio.run(main())
print(json.dumps({"calls": calls, "missing": []}), file=stdout, flush=True)
