"""Drives the Python SDK, of whatever version is installed, through the gateway.

Prints {"calls": {name: {"result": ...} or {"error": string}}, "missing": [...]}:
every call of the package with what it returned, and the public calls that this
script does not make.
"""

import inspect
import json
import os
import sys
import urllib.request

import requests

GATEWAY, KEY, CONTROL = (os.environ[name] for name in ("GATEWAY", "KEY", "CONTROL"))
PLATFORM = "https://api.runpod.io"
os.environ["RUNPOD_API_BASE_URL"] = GATEWAY  # versions that have the setting

send = requests.Session.request


def redirected(session, method, url, **options):
    """The package's own request, to the gateway where the address is fixed."""
    return send(session, method, url.replace(PLATFORM, GATEWAY, 1), **options)


requests.Session.request = redirected

import runpod  # noqa: E402 (reads the environment)

stdout, sys.stdout = sys.stdout, sys.stderr  # some versions print what they get
runpod.api_key = KEY
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJLv3vEqQTQ0Vr0mZ9f6Jn1e1xYb2hVhJ0v5sC5sC5sC me"
# What calls the run interface, configures the package or is a module of it.
OTHERS = {
    "Endpoint", "AsyncioEndpoint", "AsyncioJob", "RunPodLogger",
    "check_credentials", "get_credentials", "set_credentials",
    "get_distribution", "DistributionNotFound",
}
calls = {}
made = set()


def call(label, function_name, /, **arguments):
    """Makes a call if this version has it, and keeps what it returned."""
    function = getattr(runpod, function_name, None)
    if function is None:
        return {}
    made.add(function_name)
    known = inspect.signature(function).parameters
    try:
        result = function(**{k: v for k, v in arguments.items() if k in known})
    except Exception as error:  # whatever the package makes of a refusal
        calls[label] = {"error": f"{type(error).__name__}: {error}"}
        return {}
    calls[label] = {"result": result}
    return result or {}


def advance(duration):
    """Moves the platform's clock, which stands still otherwise."""
    body = json.dumps({"advance": duration}).encode()
    urllib.request.urlopen(urllib.request.Request(CONTROL + "/clock", body), timeout=10).close()


call("settings", "update_user_settings", pubkey=SSH_KEY)
call("gpus", "get_gpus")
call("gpu", "get_gpu", gpu_id="NVIDIA L4", gpu_quantity=2)
call("unknown gpu", "get_gpu", gpu_id="NVIDIA Nothing")

pod = call(
    "create pod", "create_pod", name="a", image_name="img:1", gpu_type_id="NVIDIA L4", gpu_count=2, volume_in_gb=20,
    container_disk_in_gb=15, ports="8888/http,22/tcp", volume_mount_path="/workspace", env={"A": "1"}, docker_args="python main.py",
)
advance("10s")
call("pods", "get_pods")
call("pod", "get_pod", pod_id=pod["id"])
call("stop pod", "stop_pod", pod_id=pod["id"])
call("resume pod", "resume_pod", pod_id=pod["id"], gpu_count=2)
call("terminate pod", "terminate_pod", pod_id=pod["id"])
call("pods at the end", "get_pods")
call("denied pod", "create_pod", name="b", image_name="img:1", gpu_type_id="NVIDIA L4", gpu_count=8)
if "instance_id" in inspect.signature(runpod.create_pod).parameters:
    cpu = call("create CPU pod", "create_pod", name="c", image_name="img:1", instance_id="cpu3c-2-4")
    call("terminate CPU pod", "terminate_pod", pod_id=cpu.get("id", ""))

registry = call("create registry", "create_container_registry_auth", name="r", username="u", password="p")
call("update registry", "update_container_registry_auth", registry_auth_id=registry.get("id", ""), username="v", password="q")
template = call(
    "create template", "create_template", name="t", image_name="worker:1", docker_start_cmd="python handler.py",
    container_disk_in_gb=15, env={"A": "1"}, is_serverless=True,
)
other = call("create another template", "create_template", name="t2", image_name="worker:2", is_serverless=True)
call("create endpoint", "create_endpoint", name="e", template_id=template.get("id", ""), gpu_ids="ADA_24", workers_max=1, idle_timeout=7)
for endpoint in call("endpoints", "get_endpoints") or []:
    call("rebind endpoint", "update_endpoint_template", endpoint_id=endpoint["id"], template_id=other["id"])
call("user", "get_user")
call("delete registry", "delete_container_registry_auth", registry_auth_id=registry.get("id", ""))
runpod.api_key = "key_nobody_has"
call("wrong key", "get_gpus")

public = {name for name, value in vars(runpod).items() if callable(value) and not name.startswith("_")}
print(json.dumps({"calls": calls, "missing": sorted(public - made - OTHERS)}), file=stdout)
