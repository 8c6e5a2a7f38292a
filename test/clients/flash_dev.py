"""Drives flash: its command init, and its command dev on the project that init made, as
a developer does, with calls to the functions of the project.

Works in the current directory, which is empty. Prints {"calls": {name: {"result": ...}
or {"error": string}}, "missing": []}.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

GATEWAY, RUNS = os.environ["GATEWAY"], os.environ["RUNS"]
FLASH = str(pathlib.Path(sys.executable).parent / "flash")
ENVIRONMENT = {
    **os.environ,
    "RUNPOD_API_BASE_URL": GATEWAY,
    "RUNPOD_REST_API_URL": GATEWAY + "/v1",
    "RUNPOD_HAPI_URL": GATEWAY,
    "RUNPOD_ENDPOINT_BASE_URL": RUNS + "/v2",
    "RUNPOD_API_KEY": os.environ["KEY"],
    "RUNPOD_URL_MIXED_OK": "1",
    "PYTHONUNBUFFERED": "1",
    "COLUMNS": "1000",  # the console breaks no lines
}

# What the skeleton does not have: a function that uses another file, and a class.
MORE = {
    "shapes.py": "def area(a, b):\n    return a * b\n",
    "area_worker.py": """
from runpod_flash import Endpoint

@Endpoint(name="area", cpu="cpu3c-1-2")
async def area(a: float, b: float = 2.0) -> dict:
    from shapes import area as product
    print("computing", a)
    return {"area": product(a, b)}
""",
    "class_worker.py": """
from runpod_flash import Endpoint

@Endpoint(name="class", cpu="cpu3c-1-2")
class Counter:
    def __init__(self):
        self.start = 40

    def add(self, n: int) -> dict:
        return {"sum": self.start + n}

    def fail(self, n: int) -> dict:
        raise ValueError("no room for " + str(n))
""",
}
calls = {}


def program(*arguments):
    """Runs flash to its end."""
    done = subprocess.run([FLASH, *arguments], env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    return {"code": done.returncode, "said": done.stdout + done.stderr}


class Console:
    """What a process prints, read as it comes."""

    def __init__(self, process):
        self.said, self.process = "", process
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.changed:
                self.said += line
                self.changed.notify_all()

    def wait_for(self, pattern):
        with self.changed:
            if not self.changed.wait_for(lambda: re.search(pattern, self.said), 60):
                raise TimeoutError(f"no {pattern} in {self.said}")
            return re.search(pattern, self.said)


def call(base, label, method, path, body=None):
    """Calls the server of flash dev; its answer is the result.

    The server puts the answer of a function that fails into the output of one that has
    not: its error is the result, without the lines that say where it arose.
    """
    request = urllib.request.Request(
        base + path, method=method, data=None if body is None else json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=100) as response:
            status, answer = response.status, json.load(response)
    except urllib.error.HTTPError as error:
        status, answer = error.code, json.load(error)
    output = answer.get("output", answer)
    if output.get("status_code") == 500:
        status, output = 500, {"error": json.loads(output["body"])["error"].split("\n")[0]}
    calls[label] = {"result": {"status": status, "output": output}}


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def dev(session):
    """Runs flash dev until session, called with its address, has ended."""
    server = subprocess.Popen(
        [FLASH, "dev", "--no-reload", "--port", str(free_port())], env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    console = Console(server)
    try:
        session(console.wait_for(r"docs +(http\S+)/docs").group(1))
    finally:
        server.send_signal(signal.SIGINT)
        code = server.wait(timeout=60)
        console.reader.join()
    return code, console.said


def wait_until_up(base):
    for _ in range(600):
        try:
            urllib.request.urlopen(base + "/ping", timeout=5).close()
            return
        except OSError:
            threading.Event().wait(0.1)


def use(base):
    """Calls each function, and removes the endpoints that this has made."""
    wait_until_up(base)
    call(base, "dev: queue, CPU", "POST", "/cpu_worker/runsync", {"input": {"input_data": {"message": "hi"}}})
    call(base, "dev: queue, GPU", "POST", "/gpu_worker/runsync", {"input": {"input_data": {}}})
    call(base, "dev: load-balanced, POST", "POST", "/lb_worker/process", {"input_data": {"n": [1, 2.5, None]}})
    call(base, "dev: load-balanced, GET", "GET", "/lb_worker/health")
    call(base, "dev: with another file", "POST", "/area_worker/runsync", {"input": {"a": 3}})
    call(base, "dev: class", "POST", "/class_worker/add/runsync", {"input": {"n": 2}})
    call(base, "dev: class that raises", "POST", "/class_worker/fail/runsync", {"input": {"n": 3}})
    call(base, "dev: without the wrapper", "POST", "/cpu_worker/runsync", {"input_data": {}})
    removed = program("undeploy", "--all", "--force")
    calls["undeploy"] = {"result": {"code": removed["code"], "all": "deleted 5/5 endpoints" in removed["said"]}}


def be_refused(base):
    """Calls functions whose endpoints may be refused."""
    wait_until_up(base)
    call(base, "dev: queue, GPU", "POST", "/gpu_worker/runsync", {"input": {"input_data": {}}})
    call(base, "dev: load-balanced, GET", "GET", "/lb_worker/health")


made = program("init", ".")
calls["init"] = {"result": {"code": made["code"], "files": sorted(p.name for p in pathlib.Path().glob("*.py"))}}
if refused := os.environ.get("REFUSED"):
    code, said = dev(be_refused)
else:
    for name, source in MORE.items():
        pathlib.Path(name).write_text(source)
    code, said = dev(use)
calls["dev"] = {"result": {
    "code": code,
    "refusals": sum(refused in line for line in said.splitlines()) if refused else 0,
    "shown": [text for text in ("computing 3.0", "ValueError: no room for 3") if text in said],
}}
print(json.dumps({"calls": calls, "missing": []}))
