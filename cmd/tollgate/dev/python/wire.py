"""Turns a call into what workers are sent, and what they answer into JSON.

Reads one JSON value from standard input and prints one. With encode, it is a call: its
body, query and path, and the function's parameters; it prints {"args": ..., "kwargs":
...}, each a base64 pickle, or {"fault": ...}. With decode, it is a base64 pickle, which may hold
plain values only: what names a class or a function is refused before it is looked up.
"""

import base64
import io
import json
import pickle
import resource
import sys

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


class Fault(Exception):
    """A fault of the call."""


class Plain(pickle.Unpickler):
    """An unpickler for values that need no import."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"it holds a {module}.{name}; functions can return what JSON can say, and bytes, tuples and sets")

    def persistent_load(self, pid):
        raise pickle.UnpicklingError("it refers to an object outside of itself")


def plain(value):
    """What JSON has no form for, in the next that it has."""
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def once(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Fault("body: a name is specified twice")
    return found


def read(body):
    try:
        return json.loads(body, object_pairs_hook=once)
    except (ValueError, RecursionError):
        raise Fault("body: must be JSON") from None


def names(kind):
    return {"integer": "a whole number", "object": "an object", "array": "a list"}.get(kind, f"a {kind}")


def wanted(schema):
    if "anyOf" in schema:
        return " or ".join(wanted(s) for s in schema["anyOf"])
    return "one of " + json.dumps(schema["enum"]) if "enum" in schema else names(schema["type"])


def fits(value, schema):
    if "anyOf" in schema:
        return any(fits(value, s) for s in schema["anyOf"])
    if "enum" in schema:
        return any(type(value) is type(e) and value == e for e in schema["enum"])
    if "type" not in schema:
        return True
    kinds = {
        "integer": (int,), "number": (int, float), "string": (str,), "boolean": (bool,),
        "null": (type(None),), "object": (dict,), "array": (list,),
    }
    right = type(value) in kinds[schema["type"]]
    return right and (schema["type"] != "array" or all(fits(v, schema.get("items", {})) for v in value))


def spelled(text, schema):
    """A value of a path or a query, as its annotation reads it."""
    try:
        value = json.loads(text)
        if schema and not fits(text, schema) and fits(value, schema):
            return value
    except (ValueError, RecursionError):
        pass
    return text


def pickled(value):
    return base64.b64encode(pickle.dumps(value, protocol=4)).decode()


def placed(args, params):
    """Takes the arguments without a name, in order. One that is left out may have others after it only if its default is known."""
    found, skipped = [], []
    for p in (p for p in params if p["positional"]):
        if p["name"] not in args:
            skipped.append(p)
            continue
        for earlier in skipped:
            if "default" not in earlier:
                raise Fault(f"{p['name']}: requires {earlier['name']} before it")
            found.append(earlier["default"])
        skipped = []
        found.append(args.pop(p["name"]))
    return found


def arguments(call):
    """Returns the arguments of a call by name."""
    params, in_path = {p["name"]: p for p in call["params"] or []}, call["path"] or {}
    if call["job"]:
        args = call["input"]
        if not isinstance(args, dict):
            raise Fault("input: must be an object that maps argument names to values")
    elif call["query"] is not None:
        twice = [name for name, values in call["query"].items() if len(values) > 1]
        if twice:
            raise Fault(f"{twice[0]}: given more than once")
        args = {n: spelled(v[0], params.get(n, {}).get("schema", {})) for n, v in call["query"].items()}
    else:
        args = read(call["body"]) if call["body"].strip() else {}
        free = [n for n in params if n not in in_path]
        whole = not isinstance(args, dict) or not set(args) <= set(params)
        if whole and len(free) == 1 and not call["variadic"]:
            args = {free[0]: args}
        if not isinstance(args, dict):
            raise Fault("body: must be an object that maps argument names to values")
    args |= {n: spelled(v, params.get(n, {}).get("schema", {})) for n, v in in_path.items()}
    for name, p in params.items():
        if name not in args and p["required"]:
            raise Fault(f"{name}: {call['name']} requires it")
        if name in args and not fits(args[name], p["schema"]):
            raise Fault(f"{name}: must be {wanted(p['schema'])}, not {json.dumps(args[name])[:60]}")
    unknown = [name for name in args if name not in params]
    if unknown and not call["variadic"]:
        raise Fault(f"{unknown[0][:60]}: {call['name']} has no such parameter")
    return args


given = json.load(sys.stdin)
try:
    if sys.argv[1] == "encode":
        try:
            args = arguments(given)
            out = {"args": [pickled(v) for v in placed(args, given["params"] or [])], "kwargs": {k: pickled(v) for k, v in args.items()}}
        except Fault as e:
            out = {"fault": str(e)}
        print(json.dumps(out))
    else:
        value = Plain(io.BytesIO(base64.b64decode(given, validate=True))).load()
        print(json.dumps(value, default=plain, allow_nan=False))
except Exception as e:
    print(f"{type(e).__name__}: {e}", file=sys.stderr)
    sys.exit(1)
