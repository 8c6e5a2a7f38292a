"""Drives flash: deploy() of its resources, its command undeploy, and its command dev.

Works in the current directory, which is empty, with the variables of docs/tasks/tools.md. Prints {"calls": {name: {"result": ...}
or {"error": string}}, "missing": []}.
"""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

GATEWAY, KEY = os.environ["GATEWAY"], os.environ["KEY"]
os.environ.update(
    RUNPOD_URL_MIXED_OK="1",
    PYTHONUNBUFFERED="1",  # flash dev is read line by line
    PYTHONWARNINGS="ignore::DeprecationWarning",
)
FLASH = str(pathlib.Path(sys.executable).parent / "flash")

# What a user of flash writes: a queue and a balanced endpoint on GPUs, and on CPUs.
WORKERS = """
from runpod_flash import Endpoint, GpuGroup

@Endpoint(name="gpu-queue", gpu=GpuGroup.ADA_24, workers=(0, 1))
async def gpu(data: dict) -> dict:
    return data

@Endpoint(name="cpu-queue", cpu="cpu3c-1-2", workers=(0, 1))
async def cpu(data: dict) -> dict:
    return data

balanced = Endpoint(name="gpu-balanced", gpu=GpuGroup.ADA_24, workers=(0, 1))

@balanced.post("/double")
async def double(n: int) -> dict:
    return {"n": 2 * n}

web = Endpoint(name="cpu-balanced", cpu="cpu3c-2-4", workers=(0, 1))

@web.get("/hello")
async def hello() -> dict:
    return {}
"""
calls = {}


def kept(label, result):
    calls[label] = {"result": result}


def program(*arguments):
    """Runs flash to its end."""
    done = subprocess.run([FLASH, *arguments], capture_output=True, text=True, timeout=120, check=False)
    return {"code": done.returncode, "said": done.stdout + done.stderr}


async def deploy():
    import runpod_flash as flash

    for resource in (
        flash.LiveServerless(name="live-gpu", gpus=[flash.GpuGroup.ADA_24], workersMax=1),
        flash.CpuLiveServerless(name="live-cpu", instanceIds=[flash.CpuInstanceType.CPU3C_2_4], workersMax=1),
        flash.LiveLoadBalancer(name="live-balanced", gpus=[flash.GpuGroup.ADA_24], workersMax=1),
        flash.ServerlessEndpoint(name="image", imageName="img:1", gpus=[flash.GpuGroup.ADA_24], workersMax=1, env={"A": "b"}),
        flash.CpuLoadBalancerSlsResource(name="cpu-balanced", imageName="img:1", workersMax=1),
    ):
        label = "deploy " + resource.name
        try:
            made = await resource.deploy()
            kept(label, {"template": made.templateId == "ept_" + made.id, "workers": made.workersMax})
        except Exception as error:  # whatever the package makes of a refusal
            calls[label] = {"error": f"{type(error).__name__}: {error}"}


def wait_for(address):
    """Returns when the address answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)


def dev():
    """Runs flash dev until its server is up, and stops it as a user does."""
    server = subprocess.Popen(
        [FLASH, "dev", "--auto-provision", "--no-reload", "--port", "18888"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        # A shell's background jobs ignore interrupts, and so do their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    said = ""
    for line in server.stdout:
        said += line
        if "docs  http" in line:
            wait_for(line.split()[1].replace("/docs", "/ping"))
            server.send_signal(signal.SIGINT)
            break
    said += server.stdout.read()
    return {"code": server.wait(timeout=60), "said": said}


asyncio.run(deploy())
everything = program("undeploy", "--all", "--force")
kept("undeploy", {"code": everything["code"], "all": "deleted 5/5 endpoints" in everything["said"]})
pathlib.Path("workers.py").write_text(WORKERS)
session = dev()
kept("dev", {
    "code": session["code"], "found": "discovered 4 endpoint(s)" in session["said"],
    "failed": [line for line in session["said"].splitlines() if "ERROR" in line or "failed" in line],
    "cleaned": "4/4 endpoints cleaned up" in session["said"],
})
print(json.dumps({"calls": calls, "missing": []}))
