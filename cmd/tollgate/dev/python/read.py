"""Reads the endpoints of a project from its source and prints them as JSON.

Nothing of the project is imported or run: files are parsed, and options are the
literals that they spell. Arguments: the directory, then the bounds for files, bytes
of a file, bytes of all files, functions, and bytes of the local modules that one
function imports. Of a file that was read, its text and its imports are kept: its tree
takes up to 560 times the memory of its text.
"""

import ast
import io
import json
import os
import re
import stat
import sys
import textwrap
import tokenize
import warnings

ROOT = sys.argv[1]
MAX_FILES, MAX_BYTES, MAX_TOTAL, MAX_FUNCTIONS, MAX_MODULES = map(int, sys.argv[2:7])
SKIPPED = {"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist"}
METHODS = {"get", "post", "put", "delete", "patch"}
TOOLKIT = re.compile(r"[a-z0-9]+_flash")
SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")

faults, files, sources, broken = [], [], {}, {}
total = 0  # bytes of the files that were read


class Fault(Exception):
    """A fault and the line it is on."""

    def __init__(self, line, text):
        super().__init__(text)
        self.line = line


def fault(path, line, text):
    faults.append({"file": path, "line": line, "text": text})


def project_files():
    """Yields the project's Python files, relative, without following links."""
    seen = 0
    for directory, names, entries in os.walk(ROOT):
        names[:] = sorted(
            n for n in names
            if not n.startswith(".") and n not in SKIPPED
            and not os.path.exists(os.path.join(directory, n, "pyvenv.cfg"))
        )
        for name in sorted(entries):
            whole = os.path.join(directory, name)
            if not name.endswith(".py") or name.startswith(".") or os.path.islink(whole) or not os.path.isfile(whole):
                continue
            seen += 1
            if seen > MAX_FILES:
                fault("", 0, f"the project has more than {MAX_FILES} Python files; name a directory with fewer")
                return
            yield os.path.relpath(whole, ROOT).replace(os.sep, "/")


def inside(path):
    """Reports whether a path leads to a file of the project itself, by no link."""
    whole = os.path.join(ROOT, path)
    return os.path.isfile(whole) and os.path.realpath(whole) == os.path.join(os.path.realpath(ROOT), *path.split("/"))


def bytes_of(path):
    """Returns the content of a regular file, which no link leads to."""
    global total
    opened = os.open(os.path.join(ROOT, path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with open(opened, "rb") as f:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise Fault(0, "not a regular file")
        raw = f.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Fault(0, f"larger than {MAX_BYTES} bytes")
    total += len(raw)
    if total > MAX_TOTAL:
        raise Fault(0, f"not read: the Python files have more than {MAX_TOTAL} bytes together; name a directory with fewer")
    return raw


def parse(path):
    """Returns the text and the tree of a file, or None with a fault."""
    if path in broken:
        return None
    try:
        if path in sources:
            text = sources[path][0]
        else:
            raw = bytes_of(path)
            encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
            text = raw.decode(encoding)
        tree = ast.parse(text)
        sources.setdefault(path, (text, imports_in(tree)))
        return text, tree
    except Fault as e:
        line, text = e.line, str(e)
    except SyntaxError as e:
        line, text = e.lineno or 0, f"invalid syntax: {e.msg}"
    except (OSError, ValueError, LookupError, RecursionError, MemoryError) as e:
        line, text = 0, f"cannot be read: {type(e).__name__}: {e}"
    broken[path] = True
    fault(path, line, text)
    return None


def known(path):
    """Returns the text and the imports of a file, or None with a fault."""
    if path not in sources and parse(path) is None:
        return None
    return sources[path]


def imports_in(tree):
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]


def value_of(node, constants, depth=0):
    """Returns the value that a node spells."""
    if depth > 20:
        raise Fault(node.lineno, "nested too deeply")
    inner = lambda n: value_of(n, constants, depth + 1)  # noqa: E731
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (bool, int, float, str))):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [inner(n) for n in node.elts]
    if isinstance(node, ast.Dict) and all(k is not None for k in node.keys):
        return {str(inner(k)): inner(v) for k, v in zip(node.keys, node.values)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        if isinstance(node.operand.value, (int, float)):
            return -node.operand.value
    if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
        return node.attr  # a member of an enumeration
    if isinstance(node, ast.Name) and node.id in constants:
        return inner(constants[node.id])
    name = getattr(node, "func", None) and getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in ("NetworkVolume", "PodTemplate", "KeyValuePair") and not node.args and all(k.arg for k in node.keywords):
        return {k.arg: inner(k.value) for k in node.keywords}
    raise Fault(node.lineno, "must be a literal: nothing of the project is run to learn it")


def schema_of(node, depth=0):
    """Returns the JSON Schema of an annotation, {} for any value."""
    if node is None or depth > 5:
        return {}
    if isinstance(node, ast.Constant):
        if node.value is None:
            return {"type": "null"}
        if isinstance(node.value, str):
            try:
                return schema_of(ast.parse(node.value, mode="eval").body, depth + 1)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return {}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return any_of(schema_of(node.left, depth + 1), schema_of(node.right, depth + 1))
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    simple = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "dict": "object", "Dict": "object", "list": "array", "List": "array"}
    if name in simple:
        return {"type": simple[name]}
    if isinstance(node, ast.Subscript):
        outer = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if outer == "Optional":
            return any_of(schema_of(parts[0], depth + 1), {"type": "null"})
        if outer == "Union":
            return any_of(*(schema_of(p, depth + 1) for p in parts))
        if outer == "Literal" and all(isinstance(p, ast.Constant) and isinstance(p.value, (str, int, bool)) for p in parts):
            return {"enum": [p.value for p in parts]}
        if outer in ("list", "List"):
            items = schema_of(parts[0], depth + 1)
            return {"type": "array", "items": items} if items else {"type": "array"}
        if outer in ("dict", "Dict"):
            return {"type": "object"}
    return {}


def any_of(*schemas):
    flat = [s for schema in schemas for s in schema.get("anyOf", [schema])]
    return {} if {} in flat else {"anyOf": flat}


def parameters(node, bound):
    """Returns the parameters of a function, and whether it takes any others."""
    a = node.args
    named = a.posonlyargs + a.args
    defaults = [None] * (len(named) - len(a.defaults)) + list(a.defaults)
    pairs = list(zip(named, defaults))[1 if bound else 0:] + list(zip(a.kwonlyargs, a.kw_defaults))
    found = []
    for arg, default in pairs:
        p = {"name": arg.arg, "schema": schema_of(arg.annotation), "required": default is None}
        if default is not None:
            try:
                p["default"] = ast.literal_eval(default)
                json.dumps(p["default"], allow_nan=False)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                p.pop("default", None)
        found.append(p)
    return found, a.kwarg is not None


def summary(node):
    lines = (ast.get_docstring(node) or "").splitlines()
    return lines[0][:200] if lines else ""


def text_of(lines, node):
    return textwrap.dedent("".join(lines[node.lineno - 1:node.end_lineno])).rstrip("\n") + "\n"


def modules_of(node, path):
    """Returns the local modules that a node imports, by the name the worker has for each."""
    base = path.rsplit("/", 1)[0] + "/" if "/" in path else ""
    found, waiting, size = {}, [(imports_in(node), base)], 0
    while waiting:
        imports, here = waiting.pop()
        for candidate in imported(imports, here, base):
            if candidate in found or not candidate.startswith(base) or not inside(candidate):
                continue
            read = known(candidate)
            if read is None:
                continue
            size += len(read[0].encode())
            if size > MAX_MODULES:
                raise Fault(node.lineno, f"its local modules have more than {MAX_MODULES} bytes")
            found[candidate] = True
            waiting.append((read[1], candidate.rsplit("/", 1)[0] + "/" if "/" in candidate else ""))
            parts = candidate[len(base):].split("/")[:-1]
            for i in range(1, len(parts) + 1):
                package = base + "/".join(parts[:i]) + "/__init__.py"
                if package not in found and inside(package) and known(package) is not None:
                    found[package] = True
                    waiting.append((sources[package][1], base + "/".join(parts[:i]) + "/"))
    return {name[len(base):]: name for name in sorted(found)}


def imported(imports, here, base):
    """Yields the files that imports may name."""
    for node in imports:
        if isinstance(node, ast.Import):
            names, level = [a.name for a in node.names], 0
        else:
            module, level = node.module or "", node.level
            names = [module] + [f"{module}.{a.name}".lstrip(".") for a in node.names if a.name != "*"]
        places = [here, base]
        if level:
            parts = here.rstrip("/").split("/") if here else []
            if level - 1 > len(parts):
                continue
            kept = parts[:len(parts) - (level - 1)]
            places = ["/".join(kept) + "/" if kept else ""]
        for name in filter(None, names):
            if level == 0 and name.split(".")[0] in sys.stdlib_module_names:
                continue
            for place in places:
                yield place + name.replace(".", "/") + ".py"
                yield place + name.replace(".", "/") + "/__init__.py"


def strings(value):
    """A string or several, as several."""
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list) or not several or not all(isinstance(v, str) and v for v in several):
        raise ValueError("want a string or a list of strings, none of them empty")
    return several


def string(pattern):
    def read(value):
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"want {pattern}")
        return value
    return read


def whole(low, high):
    def read(value):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"want a whole number from {low} to {high}")
        return value
    return read


def truth(value):
    if not isinstance(value, bool):
        raise ValueError("want True or False")
    return value


def mapping(value):
    if isinstance(value, list):  # of template: pairs
        value = {v.get("key"): v.get("value") for v in value if isinstance(v, dict)}
    if not isinstance(value, dict) or not all(isinstance(x, str) for pair in value.items() for x in pair):
        raise ValueError("want strings by name")
    return value


def workers(value):
    pair = [0, value] if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(n) is int and n >= 0 for n in pair) or pair[0] > pair[1] or pair[1] < 1:
        raise ValueError("want the most workers, at least one, or the least and the most")
    return pair


def shapes(value):
    found = []
    for name in strings(value):
        shape = name.lower().replace("_", "-")
        parts = shape.split("-")
        ram = {"cpu3c": 2, "cpu3g": 4, "cpu5c": 2}.get(parts[0])
        if ram is None or len(parts) != 3 or parts[1] not in ("1", "2", "4", "8") or parts[2] != str(int(parts[1]) * ram):
            raise ValueError(f"{name[:40]} is no shape such as cpu3c-2-4")
        found.append(shape)
    return found


def template(value):
    if not isinstance(value, dict) or not set(value) <= {"containerDiskInGb", "env"}:
        raise ValueError("want containerDiskInGb and env")
    return {"containerDiskInGb": whole(1, 10**6)(value.get("containerDiskInGb", 64)), "env": mapping(value.get("env", {}))}


def volumes(value):
    several = value if isinstance(value, list) else [value]
    ids = [v.get("id") if isinstance(v, dict) else v for v in several]
    if not ids or not all(isinstance(i, str) and i for i in ids):
        raise ValueError("want the id of a network volume, or several; volumes are not made here")
    return ids


OPTIONS = {
    "name": string(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), "id": string(r"[A-Za-z0-9]{1,64}"), "image": string(r"\S+"),
    "gpu": strings, "cpu": shapes, "gpu_count": whole(1, 64), "workers": workers, "idle_timeout": whole(1, 3600),
    "dependencies": strings, "system_dependencies": strings, "env": mapping, "execution_timeout_ms": whole(0, 604800000),
    "scaler_type": string("QUEUE_DELAY|REQUEST_COUNT"), "scaler_value": whole(1, 1000), "template": template,
    "python_version": string(r"3\.1[0-3]"), "accelerate_downloads": truth, "flashboot": truth, "volume": volumes,
    "datacenter": lambda value: [v.replace("_", "-") for v in strings(value)],
    "min_cuda_version": lambda value: string(r"\d+\.\d+")(value.removeprefix("V").replace("_", ".") if isinstance(value, str) else value),
}
ROUTE = re.compile(r"(/(?!\.{1,2}(/|$))([A-Za-z0-9._~-]+|\{[A-Za-z_][A-Za-z0-9_]*\}))+")


class File:
    """One file under way: its names for Endpoint, its constants, its endpoints."""

    def __init__(self, path, text, tree):
        self.path, self.lines, self.tree = path, io.StringIO(text, newline=None).readlines(), tree
        self.names, self.toolkits, self.constants = {}, {}, {}
        self.endpoints, self.variables = [], {}

    def read(self):
        for node in self.tree.body:
            try:
                self.statement(node)
            except Fault as e:
                fault(self.path, e.line, str(e))
            if functions > MAX_FUNCTIONS:
                return

    def statement(self, node):
        if isinstance(node, ast.ImportFrom) and node.module and TOOLKIT.fullmatch(node.module):
            for a in node.names:
                if a.name == "Endpoint":
                    self.names[a.asname or a.name] = node.module
        elif isinstance(node, ast.Import):
            for a in node.names:
                if TOOLKIT.fullmatch(a.name):
                    self.toolkits[a.asname or a.name] = a.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) != 1 or not isinstance(targets[0], ast.Name) or node.value is None:
                return
            toolkit = self.toolkit(node.value)
            if toolkit:
                self.variables[targets[0].id] = self.endpoint(node.value, toolkit, targets[0].id)
            else:
                self.constants[targets[0].id] = node.value
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                self.decorated(node, decorator)

    def toolkit(self, call):
        """Returns the toolkit whose Endpoint a node calls, or None."""
        if not isinstance(call, ast.Call):
            return None
        f = call.func
        if isinstance(f, ast.Name):
            return self.names.get(f.id)
        if isinstance(f, ast.Attribute) and f.attr == "Endpoint" and isinstance(f.value, ast.Name):
            return self.toolkits.get(f.value.id)
        return None

    def endpoint(self, call, toolkit, variable):
        e = {"line": call.lineno, "variable": variable, "toolkit": toolkit, "options": {}, "functions": []}
        self.endpoints.append(e)
        given = [("name", call.args[0])] if call.args else []
        if len(call.args) > 1:
            raise Fault(call.lineno, "Endpoint takes one argument without a name")
        for k in call.keywords:
            if k.arg is None:
                raise Fault(call.lineno, "**options of an endpoint must be written out")
            given.append((k.arg, k.value))
        for name, node in given:
            if name not in OPTIONS:
                raise Fault(node.lineno, f"{name}: unknown option")
            if name in e["options"]:
                raise Fault(node.lineno, f"{name}: given twice")
            try:
                value = value_of(node, self.constants)
                if value is not None and value != []:
                    e["options"][name] = OPTIONS[name](value)
            except Fault as f:
                raise Fault(f.line, f"{name}: {f}") from None
            except ValueError as f:
                raise Fault(node.lineno, f"{name}: {f}, not {repr(value)[:60]}") from None
        for one, other in (("cpu", "gpu"), ("id", "image")):
            if one in e["options"] and other in e["options"]:
                raise Fault(call.lineno, f"{one} and {other} exclude each other")
        return e

    def finish(self):
        """Gives endpoints their names, and leaves out those that nothing calls."""
        for e in self.endpoints:
            o, functions = e["options"], e["functions"]
            e["client"] = "id" in o or "image" in o
            balanced = any("path" in f for f in functions)
            if e["client"] and functions:
                fault(self.path, e["line"], "an endpoint with id or image runs no function of the file")
            elif e["client"]:
                e["functions"] = [{"name": e["variable"] or o.get("name", "job"), "line": e["line"]}]
            if "name" not in o and "id" not in o and (balanced or e["client"]):
                fault(self.path, e["line"], "an endpoint with routes or an image requires a name")
            if balanced and o.get("scaler_type") == "QUEUE_DELAY":
                fault(self.path, e["line"], "scaler_type: load-balanced endpoints scale by REQUEST_COUNT")
            if "name" not in o and "id" not in o and functions:
                o["name"] = functions[0].get("class", functions[0]["name"]).lstrip("_") or "function"
        self.endpoints = [e for e in self.endpoints if e["functions"]]

    def decorated(self, node, decorator):
        toolkit = self.toolkit(decorator)
        if toolkit:
            e = self.endpoint(decorator, toolkit, "")
            if isinstance(node, ast.ClassDef):
                self.methods(e, node)
            else:
                self.function(e, node, {})
            return
        f = decorator.func if isinstance(decorator, ast.Call) else None
        if not isinstance(f, ast.Attribute) or not isinstance(f.value, ast.Name) or f.value.id not in self.variables:
            return
        if f.attr not in METHODS or isinstance(node, ast.ClassDef):
            raise Fault(decorator.lineno, f"{f.attr} makes no route; there are get, post, put, delete and patch, for functions")
        if any(k.arg == "local" for k in decorator.keywords):
            raise Fault(decorator.lineno, "local routes are not served: nothing of the project runs on this machine")
        path = next((value_of(k.value, self.constants) for k in decorator.keywords if k.arg == "path"), None)
        if decorator.args:
            path = value_of(decorator.args[0], self.constants)
        if not isinstance(path, str) or not ROUTE.fullmatch(path):
            raise Fault(decorator.lineno, "a route requires a path such as /images/{name}")
        if path in ("/ping", "/execute"):
            raise Fault(decorator.lineno, f"the route {path} is the worker's own")
        self.function(self.variables[f.value.id], node, {"method": f.attr.upper(), "path": path})

    def function(self, e, node, route):
        params, variadic = parameters(node, bound=False)
        self.add(e, {
            "name": node.name, "line": node.lineno, "summary": summary(node), "params": params, "variadic": variadic,
            "source": text_of(self.lines, node), "modules": modules_of(node, self.path), **route,
        })

    def methods(self, e, node):
        source, modules = text_of(self.lines, node), modules_of(node, self.path)
        for m in node.body:
            if not isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            plain = {getattr(d, "id", getattr(d, "attr", "")) for d in m.decorator_list}
            if m.name == "__init__" and any(p["required"] for p in parameters(m, bound=True)[0]):
                raise Fault(m.lineno, f"{node.name} is made without arguments; give those of __init__ defaults")
            if m.name.startswith("_") or "property" in plain:
                continue
            params, variadic = parameters(m, bound="staticmethod" not in plain)
            self.add(e, {
                "name": m.name, "class": node.name, "line": m.lineno, "summary": summary(m) or summary(node),
                "params": params, "variadic": variadic, "source": source, "modules": modules,
            })

    def add(self, e, function):
        global functions
        functions += 1
        if functions > MAX_FUNCTIONS:
            raise Fault(function["line"], f"the project has more than {MAX_FUNCTIONS} functions")
        e["functions"].append(function)


functions = 0
warnings.simplefilter("ignore")
read = file = None
for path in project_files():
    read = file = None  # one tree at a time
    read = parse(path)
    if read is None:
        continue
    file = File(path, *read)
    try:
        file.read()
        file.finish()
    except (RecursionError, MemoryError) as e:
        fault(path, 0, f"cannot be read: {type(e).__name__}")
    if not file.endpoints:
        continue
    if not all(SEGMENT.fullmatch(part) for part in path[:-len(".py")].split("/")):
        fault(path, 0, "not served: routes have the file's path, of letters, digits, _, . and -")
        continue
    files.append({"path": path, "endpoints": file.endpoints})

used = {name for f in files for e in f["endpoints"] for fn in e["functions"] for name in fn.get("modules", {}).values()}
print(json.dumps({
    "python": "%d.%d" % sys.version_info[:2], "files": files, "faults": faults,
    "modules": {name: sources[name][0] for name in sorted(used)},
}, allow_nan=False))
