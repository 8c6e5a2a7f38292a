"""Runs one function that a worker was sent, and leaves its answer in a file.

Started as: function.py ANSWER MEMORY PROCESSES, with the job's input as JSON on standard
input, in the directory that is the function's own. It forks: the parent watches over the
function's processes, the child is the function.
"""

import ctypes
import json
import os
import pathlib
import resource
import signal
import sys

ANSWER, MEMORY, PROCESSES = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
FILE = 1 << 30  # bytes of the largest file that may be written
INTERVAL = 0.1  # seconds between two looks at the function's processes
EMULATOR, PAGE = os.getppid(), os.sysconf("SC_PAGE_SIZE")


# The parent.


def descendants():
    """The function's processes by number, with the bytes that each holds; none where there is no /proc."""
    parents, sizes = {}, {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        try:
            fields = pathlib.Path("/proc", entry, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # no process, or one that has just ended
        if entry.isdigit():
            parents[int(entry)], sizes[int(entry)] = int(fields[1]), int(fields[21]) * PAGE
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: sizes[pid] for pid in found - {os.getpid()}}


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def end_all(function):
    """Kills the function and all of its processes, also those that have outlived it."""
    kill(function)
    while left := descendants():
        for pid in left:
            kill(pid)
        os.waitpid(-1, 0)


def fail(text):
    ANSWER.write_text(json.dumps({"success": False, "error": text}))


def watch(function):
    """Waits for the function's end; ends it itself for holding too much."""

    def look(*_):
        held = descendants()
        if os.getppid() != EMULATOR:
            end_all(function)
            os._exit(1)
        if len(held) > PROCESSES:
            too_much(f"the function started more than {PROCESSES} processes")
        if sum(held.values()) > MEMORY:
            too_much(f"the function's processes hold more than {MEMORY} bytes of memory")

    def too_much(text):
        end_all(function)
        fail(text)
        os._exit(0)

    def stop(*_):
        end_all(function)
        os._exit(1)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, INTERVAL, INTERVAL)
    status = os.waitpid(function, 0)[1]
    signal.setitimer(signal.ITIMER_REAL, 0)
    end_all(function)
    if os.WIFSIGNALED(status):
        fail(f"the function's process was ended by signal {os.WTERMSIG(status)}")
    elif not ANSWER.exists() or not ANSWER.stat().st_size:
        fail(f"the function's process exited with code {os.WEXITSTATUS(status)} before the function returned")


# The child.


def decode(value, form):
    """An argument: base64 of a pickle, or JSON as it is."""
    if form == "json":
        return value
    import base64
    import pickle

    return pickle.loads(base64.b64decode(value))


def encode(value):
    import base64

    try:
        import cloudpickle as pickle  # takes functions and classes of the job, too
    except ImportError:
        import pickle
    return base64.b64encode(pickle.dumps(value)).decode()


def materialize(modules):
    """Writes the local modules that came along, and makes them importable."""
    root = pathlib.Path.cwd() / "modules"
    for name, source in modules.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            raise ValueError(f"module path {name!r} leads out of the job's directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    sys.path.insert(0, str(root))


def keep_inside(root):
    """Refuses Python code that writes outside of root, or reads the environment of other processes.

    It keeps mistakes in and is not a wall: other code than Python is not asked.
    """
    changes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    paths = {  # how many of an event's arguments are paths that it changes
        "os.chmod": 1, "os.chown": 1, "os.link": 2, "os.mkdir": 1, "os.remove": 1, "os.rename": 2,
        "os.rmdir": 1, "os.symlink": 2, "os.truncate": 1, "os.utime": 1,
    }

    def hook(event, arguments):
        for path in arguments[: 1 if event == "open" else paths.get(event, 0)]:
            if not isinstance(path, (str, bytes, os.PathLike)):
                continue
            full = os.path.realpath(os.fsdecode(path))
            if event == "open" and not arguments[2] & changes:
                if full.startswith("/proc/") and full.endswith("/environ") and full != f"/proc/{os.getpid()}/environ":
                    raise PermissionError("the function may not read the environment of other processes")
            elif full not in (os.devnull, str(ANSWER)) and os.path.commonpath([full, root]) != root:
                raise PermissionError(f"the function may write only in its own directory, not to {full}")

    sys.addaudithook(hook)


def source_name(job):
    """What tracebacks call the job's source."""
    return "<{}>".format(job.get("class_name") or job.get("function_name"))


def call(job):
    """Runs the job's function and returns its answer."""
    import asyncio
    import inspect
    import linecache
    import types

    form = job.get("serialization_format", "cloudpickle")
    is_class = job.get("execution_type") == "class"
    name, source = (job["class_name"], job["class_code"]) if is_class else (job["function_name"], job["function_code"])
    file = source_name(job)

    def given(args, kwargs):
        return [decode(v, form) for v in job.get(args) or []], {k: decode(v, form) for k, v in (job.get(kwargs) or {}).items()}

    materialize(job.get("modules") or {})
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # so that classes of the job are pickled whole
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), main.__dict__)
    if not hasattr(main, name):
        raise NameError(f"the source has no {name!r}")
    called = getattr(main, name)
    if is_class:
        args, kwargs = given("constructor_args", "constructor_kwargs")
        called = getattr(called(*args, **kwargs), job.get("method_name") or "__call__")
    args, kwargs = given("args", "kwargs")
    result = called(*args, **kwargs)
    if inspect.isawaitable(result):

        async def outcome():
            return await result

        result = asyncio.run(outcome())
    return {"success": True, "json_result": result} if form == "json" else {"success": True, "result": encode(result)}


def describe(error, source):
    """The error in a line, and how the job's own source came to it."""
    import traceback

    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != source:
        trace = trace.tb_next
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    return text + ("\n" + "".join(traceback.format_tb(trace)).rstrip() if trace else "")


def bound(what, soft, hard):
    try:
        resource.setrlimit(what, (soft, hard))
    except (ValueError, OSError):
        pass  # not on this system


def function(job):
    me, hard = os.getpid(), MEMORY + MEMORY // 8
    bound(resource.RLIMIT_CORE, 0, 0)
    bound(resource.RLIMIT_FSIZE, FILE, FILE)
    bound(resource.RLIMIT_AS, MEMORY, hard)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    keep_inside(os.getcwd())
    try:
        text = json.dumps(call(job), allow_nan=False)
    except BaseException as error:  # also an exit: the job ends, and must say why
        bound(resource.RLIMIT_AS, hard, hard)  # for telling it
        text = json.dumps({"success": False, "error": describe(error, source_name(job))})
    if os.getpid() == me:  # and no process that the function has forked
        ANSWER.write_text(text)
    os._exit(0)


def main():
    job = json.load(sys.stdin)
    try:
        # Processes that the function leaves behind become this one's children (PR_SET_CHILD_SUBREAPER).
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    except AttributeError:
        pass  # not Linux
    pid = os.fork()
    if pid == 0:
        function(job)
    watch(pid)


main()
