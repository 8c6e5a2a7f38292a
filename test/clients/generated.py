"""Drives a client that openapi-python-client generates from the gateway's description.

Works in the current directory, which is empty. Prints {"calls": {label: {"result": ...} or
{"error": string}}, "missing": []}.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys

GATEWAY, KEY = os.environ["GATEWAY"], os.environ["KEY"]
pathlib.Path("config.yml").write_text("post_hooks: []\n")
subprocess.run(
    [str(pathlib.Path(sys.executable).parent / "openapi-python-client"), "generate", "--url", GATEWAY + "/v2/openapi.json",
     "--meta", "none", "--output-path", "generated", "--config", "config.yml", "--fail-on-warning"],
    check=True, stdout=sys.stderr,
)
sys.path.insert(0, os.getcwd())
from generated import AuthenticatedClient, models  # noqa: E402 (it did not exist before)

client = AuthenticatedClient(base_url=GATEWAY, token=KEY, raise_on_unexpected_status=True)
calls = {}


def call(label, operation, *path, **arguments):
    """Makes a call of a module of the client, such as pods.create_pod, and keeps what it returned."""
    module = importlib.import_module("generated.api." + operation)
    response = module.sync_detailed(*path, client=client, **arguments)
    parsed = response.parsed.to_dict() if response.parsed is not None else {}
    if response.status_code >= 300:
        calls[label] = {"error": f"{int(response.status_code)} {json.dumps(parsed)}"}
        return {}
    calls[label] = {"result": {"status": int(response.status_code), **parsed}}
    return parsed


call("gpu types", "catalog.list_gpu_types")  # sends count=1, the documented default
call("gpu type", "catalog.get_gpu_type", "NVIDIA L4")
call("gpu types with stock", "catalog.list_gpu_types", include=[models.CatalogInclude.AVAILABILITY], product=[models.Product.POD], count=2)
call("cpu types", "catalog.list_cpu_types")
call("data centers", "catalog.list_data_centers")

pod = call("create pod", "pods.create_pod", body=models.CreatePodRequest.from_dict({"name": "a", "image": "img:1", "gpu": {"id": "NVIDIA L4", "count": 1}}))
call("pods", "pods.list_pods")
call("pod", "pods.get_pod", pod["id"])
call("rename pod", "pods.update_pod", pod["id"], body=models.UpdatePodRequest.from_dict({"name": "b"}))
call("stop pod", "pods.pod_action", pod["id"], body=models.PodActionRequest.from_dict({"action": "stop"}))
call("delete pod", "pods.delete_pod", pod["id"])
call("short name", "pods.create_pod", body=models.CreatePodRequest.from_dict({"name": "a", "image": "img:1", "gpu": {"id": "L4"}}))
call("denied pod", "pods.create_pod", body=models.CreatePodRequest.from_dict({"name": "a", "image": "img:1", "gpu": {"id": "NVIDIA L4", "count": 8}}))

# A model with its own defaults: all of them are sent.
endpoint = call("create endpoint", "serverless.create_endpoint", body=models.CreateEndpointRequest(
    name="e", image="img:1", gpu=models.CreateEndpointGpuConfig.from_dict({"pools": ["ADA_24"]}),
    scaling=models.QueueDelayScaling.from_dict({"type": "QUEUE_DELAY", "queueDelay": 4}),
))
call("endpoints", "serverless.list_endpoints")
call("workers", "serverless.list_endpoint_workers", endpoint["id"])
call("scale endpoint", "serverless.update_endpoint", endpoint["id"], body=models.UpdateEndpointRequest.from_dict({"workers": {"max": 1}}))
call("delete endpoint", "serverless.delete_endpoint", endpoint["id"])

template = call("create template", "templates.create_template", body=models.CreateTemplateRequest.from_dict({"name": "t", "image": "img:1"}))
call("delete template", "templates.delete_template", template["id"])
registry = call("create registry", "registries.create_registry", body=models.CreateRegistryRequest.from_dict({"name": "r", "username": "u", "password": "p"}))
call("delete registry", "registries.delete_registry", registry["id"])
call("bill", "billing.list_pod_billing")
print(json.dumps({"calls": calls, "missing": []}))
