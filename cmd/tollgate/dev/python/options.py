"""Reads the options and the parameters of endpoints from their expressions. It is put between source.py and read.py."""

ENUMERATIONS = {
    "gpu": ("GpuGroup", "GpuType"), "cpu": ("CpuInstanceType",), "datacenter": ("DataCenter",), "volume": ("DataCenter",),
    "min_cuda_version": ("CudaVersion",), "scaler_type": ("ServerlessScalerType",),
}
RECORDS = {"volume": ("NetworkVolume",), "template": ("PodTemplate", "KeyValuePair")}


def value_of(node, names, option, depth=0):
    """Returns the value that a node spells as an option."""
    if depth > 20:
        raise Fault(node, "nested too deeply")
    inner = lambda n: value_of(n, names, option, depth + 1)  # noqa: E731
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (bool, int, float, str))):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [inner(n) for n in node.elts]
    if isinstance(node, ast.Dict) and all(k is not None for k in node.keys):
        return {str(inner(k)): inner(v) for k, v in zip(node.keys, node.values)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        if isinstance(node.operand.value, (int, float)):
            return -node.operand.value
    if isinstance(node, (ast.Name, ast.Attribute)):
        kind, value, home = names.resolve(node)
        if kind == "toolkit":
            return enumerated(node, value, option)
        if kind != "value":
            raise Fault(node, f"{ast.unparse(node)} is a {kind}, not a value")
        try:
            return value_of(value, home, option, depth + 1)
        except Fault as f:
            raise Fault(node, f"{ast.unparse(node)}, at {home.path}:{f.line}:{f.column}: {f}") from None
    if isinstance(node, ast.Call) and not node.args and all(k.arg for k in node.keywords):
        called = symbol(node.func, names)
        if called and called[-1] in RECORDS.get(option, ()):
            return {k.arg: inner(k.value) for k in node.keywords}
    raise Fault(node, "must be a literal, because the project is not run to evaluate it")


def symbol(node, names):
    """Returns the parts of the toolkit's name that a node stands for, or None."""
    try:
        kind, value, home = names.resolve(node)
        for _ in range(20):
            if kind != "value" or not isinstance(value, (ast.Name, ast.Attribute)):
                break
            kind, value, home = home.resolve(value)
    except Fault:
        return None
    return value if kind == "toolkit" else None


def enumerated(node, parts, option):
    """Returns the member of the toolkit's enumeration that an option may have, by its name."""
    parts = parts[1:]
    while len(parts) > 1 and parts[0].islower():  # modules
        parts = parts[1:]
    if parts[-1] in ("name", "value"):
        parts = parts[:-1]
    wanted = ENUMERATIONS.get(option, ())
    if len(parts) == 2 and parts[0] in wanted:
        return parts[1]
    raise Fault(node, f"{ast.unparse(node)} is not a value of this option" + (", must be a member of " + " or ".join(wanted) if wanted else ""))


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


def parameters(node, names, bound):
    """Returns the parameters of a function, and whether it takes any others."""
    a = node.args
    named = a.posonlyargs + a.args
    defaults = [None] * (len(named) - len(a.defaults)) + list(a.defaults)
    pairs = list(zip(named, defaults))[1 if bound else 0:] + list(zip(a.kwonlyargs, a.kw_defaults))
    found = []
    for arg, default in pairs:
        p = {"name": arg.arg, "schema": schema_of(arg.annotation), "required": default is None, "positional": arg in a.posonlyargs}
        if default is not None:
            try:
                p["default"] = value_of(default, names, "")
                json.dumps(p["default"], allow_nan=False)
            except (Fault, ValueError, TypeError, RecursionError, MemoryError):
                p.pop("default", None)
        found.append(p)
    return found, a.kwarg is not None


def summary(node):
    lines = (ast.get_docstring(node) or "").splitlines()
    return lines[0][:200] if lines else ""


def yields_in(node):
    """Returns the place that makes a function a generator, or None."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Yield, ast.YieldFrom)):
            return child
        if not isinstance(child, FUNCTIONS + (ast.Lambda, ast.ClassDef)) and (found := yields_in(child)):
            return found
    return None


def strings(value):
    """A string or several, as several."""
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list) or not several or not all(isinstance(v, str) and v for v in several):
        raise ValueError("must be a string or a list of strings, none of them empty")
    return several


def string(pattern):
    def read(value):
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"must match {pattern}")
        return value
    return read


def whole(low, high):
    def read(value):
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value
    return read


def truth(value):
    if not isinstance(value, bool):
        raise ValueError("must be True or False")
    return value


def mapping(value):
    if isinstance(value, list):  # of template: pairs
        value = {v.get("key"): v.get("value") for v in value if isinstance(v, dict)}
    if not isinstance(value, dict) or not all(isinstance(x, str) for pair in value.items() for x in pair):
        raise ValueError("must be a mapping of names to strings")
    return value


def workers(value):
    pair = [0, value] if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(n) is int and n >= 0 for n in pair) or pair[0] > pair[1] or pair[1] < 1:
        raise ValueError("must be the maximum number of workers, at least 1, or the minimum and the maximum")
    return pair


def shapes(value):
    found = [name.lower().replace("_", "-") for name in strings(value)]
    for shape in found:
        if not re.fullmatch(r"[a-z0-9]+-[1-9][0-9]{0,3}-[1-9][0-9]{0,4}", shape):
            raise ValueError(f"{shape[:40]} is not a shape such as cpu3c-2-4")
    return found


def template(value):
    if not isinstance(value, dict) or not set(value) <= {"containerDiskInGb", "env"}:
        raise ValueError("must contain only containerDiskInGb and env")
    return {"containerDiskInGb": whole(1, 10**6)(value.get("containerDiskInGb", 64)), "env": mapping(value.get("env", {}))}


def volumes(value):
    several = value if isinstance(value, list) else [value]
    ids = [v.get("id") if isinstance(v, dict) else v for v in several]
    if not ids or not all(isinstance(i, str) and i for i in ids):
        raise ValueError("must be the ID of one or more existing network volumes")
    return ids


OPTIONS = {
    "name": string(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"), "id": string(r"[A-Za-z0-9]{1,64}"), "image": string(r"\S+"),
    "gpu": strings, "cpu": shapes, "gpu_count": whole(1, 64), "workers": workers, "idle_timeout": whole(1, 3600),
    "dependencies": strings, "system_dependencies": strings, "env": mapping, "execution_timeout_ms": whole(0, 604800000),
    "scaler_type": string("QUEUE_DELAY|REQUEST_COUNT"), "scaler_value": whole(1, 1000), "template": template,
    "max_concurrency": whole(1, 10**6), "python_version": string(r"3\.1[0-3]"), "accelerate_downloads": truth, "flashboot": truth, "volume": volumes,
    "datacenter": lambda value: [v.replace("_", "-") for v in strings(value)],
    "min_cuda_version": lambda value: string(r"\d+\.\d+")(value.removeprefix("V").replace("_", ".") if isinstance(value, str) else value),
}
