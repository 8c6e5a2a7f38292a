"""Drives the v2 clients of the package kestrel-cloud-runpod: the control plane and the run interface.

Prints {"calls": {label: {"result": ...} or {"error": string}}, "missing": [...]}: the public methods that the script does not call are
missing.
"""

import dataclasses
import enum
import importlib.util
import json
import os
import sys
import time
import types

# The package's __init__ loads the product that the clients were written for; the clients need httpx alone.
package = types.ModuleType("kestrel_cloud_runpod")
package.__path__ = importlib.util.find_spec("kestrel_cloud_runpod").submodule_search_locations
sys.modules[package.__name__] = package

from kestrel_cloud_runpod import clients, models  # noqa: E402

GATEWAY, KEY = os.environ["GATEWAY"], os.environ["KEY"]
control = clients.RunpodControlPlaneClient(api_key=KEY, base_url=GATEWAY + "/v2")
run = clients.RunpodServerlessClient(api_key=KEY, base_url=GATEWAY + "/v2")
calls = {}
made = {"close"}


def plain(value):
    """The value as JSON has it."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def call(label, method, *arguments, **named):
    """Makes a call and keeps what it returned; the first of an iterator."""
    made.add(method.__name__)
    try:
        result = method(*arguments, **named)
        if method.__name__.startswith("iter_"):
            result = next(result, None)
    except Exception as error:  # whatever the package makes of a refusal
        calls[label] = {"error": f"{type(error).__name__}: {error}"}
        return None
    calls[label] = {"result": plain(result)}
    return result


call("gpus", control.list_gpus)
call("gpu", control.get_gpu, "NVIDIA L4")
pod = call("create pod", control.create_pod, models.PodCreateRequest(name="a", image="img:1", gpu_id="NVIDIA L4"))
others = [control.create_pod(models.PodCreateRequest(name=name, image="img:1", gpu_id="NVIDIA L4")).id for name in "bcde"]
call("pods", control.list_pods)
for other in others:
    control.delete_pod(other)
call("pod", control.get_pod, pod.id)
call("logs", control.iter_pod_logs, pod.id, tail=10, source="system", stream_window_seconds=2)
call("stop pod", control.pod_action, pod.id, "stop")
call("delete pod", control.delete_pod, pod.id)
call("denied pod", control.create_pod, models.PodCreateRequest(name="b", image="img:1", gpu_id="NVIDIA L4", gpu_count=8))
call("volumes", control.list_network_volumes)



def new_endpoint(name, workers):
    return models.EndpointCreateRequest(
        name=name, image="img:1", gpu_pools=("ADA_24",), endpoint_type="QUEUE", workers_min=workers, scaling={"type": "QUEUE_DELAY", "queueDelay": 4},
    )


endpoint = call("create endpoint", control.create_endpoint, new_endpoint("e", 1))
others = [control.create_endpoint(new_endpoint(name, 0)).id for name in "fg"]
call("endpoints", control.list_endpoints)
for other in others:
    control.delete_endpoint(other)
call("endpoint", control.get_endpoint, endpoint.id)
call("update endpoint", control.update_endpoint, endpoint.id, models.EndpointUpdateRequest(workers_max=2))
deadline = time.monotonic() + 60
while not (workers := call("workers", control.list_endpoint_workers, endpoint.id))["workers"] and time.monotonic() < deadline:
    time.sleep(0.1)  # until the emulator has started the worker
call("worker logs", control.iter_worker_logs, endpoint.id, workers["workers"][0]["id"], tail=10, source="system", stream_window_seconds=2)

job = call("run", run.run, endpoint.id, {"x": 1})
while (state := call("status", run.status, endpoint.id, job.id)).status in ("IN_QUEUE", "IN_PROGRESS") and time.monotonic() < deadline:
    time.sleep(0.1)
call("health", run.health, endpoint.id)
call("cancel", run.cancel, endpoint.id, job.id)
call("retry", run.retry, endpoint.id, job.id)
call("mistyped endpoint", run.run, "no-such-endpoint", {"x": 1})
call("delete endpoint", control.delete_endpoint, endpoint.id)
call("pod bill", control.pod_billing, last_n=1)
call("serverless bill", control.serverless_billing, last_n=1)
public = {name for client in (control, run) for name in dir(client) if not name.startswith("_") and callable(getattr(client, name)) and name != "transport"}
print(json.dumps({"calls": calls, "missing": sorted(public - made)}))
