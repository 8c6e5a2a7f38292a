"""Reads the endpoints of a project from its source and prints them as JSON.

Options are the literals that they spell, constants of the project, or members of the
toolkit's enumerations. Arguments: the directory, then the bounds for files, bytes of a
file, bytes of all files, functions, and bytes of the local modules that one function
imports.
"""

METHODS = {"get", "post", "put", "delete", "patch"}
SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
RELEVANT = re.compile(r"_flash|Endpoint|@\w+\.(get|post|put|delete|patch)\(")
ROUTE = re.compile(r"(/(?!\.{1,2}(/|$))([A-Za-z0-9._~-]+|\{[A-Za-z_][A-Za-z0-9_]*\}))+")


class File:
    """One file under way: its names up to here, its endpoints, and what its functions need of it."""

    def __init__(self, path, text, tree):
        self.path, self.lines, self.tree = path, io.StringIO(text, newline=None).readlines(), tree
        self.names = Names(path, tree)
        self.endpoints, self.variables, self.read_calls = [], {}, set()

    def read(self):
        for node in self.tree.body:
            try:
                self.statement(node)
            except Fault as e:
                fault(self.path, e)
            if functions > MAX_FUNCTIONS:
                return
        self.unserved()

    def statement(self, node):
        variable = self.variable(node)
        if variable:
            self.variables[variable] = self.endpoint(node.value, variable)
        self.names.bind(node)
        decorators = getattr(node, "decorator_list", [])
        for decorator in decorators:
            self.decorated(node, decorator)
        others = [d for d in decorators if not self.toolkit(d) and not self.routed(d)]
        for d in others if len(others) < len(decorators) else []:
            notice(self.path, Fault(d, f"@{ast.unparse(d)[:60]} is not applied: a worker runs {node.name} without its decorators"))

    def toolkit(self, call):
        """Returns the toolkit whose Endpoint a node calls, or None."""
        called = symbol(call.func, self.names) if isinstance(call, ast.Call) else None
        return called[0] if called and called[-1] == "Endpoint" else None

    def variable(self, node):
        """Returns the variable that a statement gives an endpoint, or None."""
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)] if isinstance(node, ast.AnnAssign) else []
        return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) and self.toolkit(node.value) else None

    def endpoint(self, call, variable):
        self.read_calls.add(id(call))
        e = {"line": call.lineno, "column": call.col_offset + 1, "variable": variable, "toolkit": self.toolkit(call), "options": {}, "functions": []}
        self.endpoints.append(e)
        given = [("name", call.args[0])] if call.args else []
        if len(call.args) > 1:
            raise Fault(call, "Endpoint accepts only one positional argument")
        for k in call.keywords:
            if k.arg is None:
                raise Fault(k.value, "**options of an endpoint must be written out")
            given.append((k.arg, k.value))
        for name, node in given:
            if name not in OPTIONS:
                raise Fault(node, f"{name}: unknown option")
            if name in e["options"]:
                raise Fault(node, f"{name}: specified twice")
            try:
                value = value_of(node, self.names, name)
                if value is not None and value != []:
                    e["options"][name] = OPTIONS[name](value)
            except Fault as f:
                raise Fault((f.line, f.column), f"{name}: {f}") from None
            except ValueError as f:
                raise Fault(node, f"{name}: {f}, not {repr(value)[:60]}") from None
        for one, other in (("cpu", "gpu"), ("id", "image")):
            if one in e["options"] and other in e["options"]:
                raise Fault(call, f"{one} and {other} cannot be combined")
        return e

    def finish(self):
        """Gives endpoints their names, and leaves out those that nothing calls."""
        for e in self.endpoints:
            o, functions, at = e["options"], e["functions"], (e["line"], e["column"])
            e["client"] = "id" in o or "image" in o
            balanced = any("path" in f for f in functions)
            if e["client"] and functions:
                fault(self.path, Fault(at, "an endpoint with id or image runs no function of the file"))
            elif e["client"]:
                e["functions"] = [{"name": e["variable"] or o.get("name", "job"), "line": e["line"], "column": e["column"]}]
            if "name" not in o and "id" not in o and (balanced or e["client"]):
                fault(self.path, Fault(at, "an endpoint with routes or an image requires a name"))
            if balanced and o.get("scaler_type") == "QUEUE_DELAY":
                fault(self.path, Fault(at, "scaler_type: load-balanced endpoints scale by REQUEST_COUNT"))
            if "name" not in o and "id" not in o and functions:
                o["name"] = functions[0].get("class", functions[0]["name"]).lstrip("_") or "function"
            if not e["functions"] and not any(f["file"] == self.path for f in faults):
                notice(self.path, Fault(at, "not served: no function, route or image of this file uses the endpoint"))
        self.endpoints = [e for e in self.endpoints if e["functions"]]

    def decorated(self, node, decorator):
        if self.toolkit(decorator):
            e = self.endpoint(decorator, "")
            if isinstance(node, ast.ClassDef):
                self.methods(e, node)
            else:
                self.function(e, node, {})
            return
        if (symbol(decorator, self.names) or [""])[-1] == "Endpoint":
            raise Fault(decorator, "Endpoint requires parentheses: @Endpoint(...)")
        e = self.routed(decorator)
        if e is None:
            return
        self.read_calls.add(id(decorator))
        verb = decorator.func.attr
        if verb not in METHODS or isinstance(node, ast.ClassDef):
            raise Fault(decorator, f"{verb} does not define a route; use get, post, put, delete or patch with a function")
        if any(k.arg == "local" for k in decorator.keywords):
            raise Fault(decorator, "local routes are not served, because the project does not run on this machine")
        path = next((value_of(k.value, self.names, "path") for k in decorator.keywords if k.arg == "path"), None)
        if decorator.args:
            path = value_of(decorator.args[0], self.names, "path")
        if not isinstance(path, str) or not ROUTE.fullmatch(path):
            raise Fault(decorator, "a route requires a path such as /images/{name}")
        if path in ("/ping", "/execute"):
            raise Fault(decorator, f"route {path} is reserved for the worker")
        self.function(e, node, {"method": verb.upper(), "path": path})

    def routed(self, decorator):
        """Returns the endpoint of this file whose method a decorator calls, or None."""
        f = decorator.func if isinstance(decorator, ast.Call) else None
        return self.variables.get(f.value.id) if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) else None

    def function(self, e, node, route):
        params, variadic = parameters(node, self.names, bound=False)
        for name in re.findall(r"\{(\w+)\}", route.get("path", "")):
            if not variadic and all(p["name"] != name for p in params):
                raise Fault(node, f"{node.name} must have the parameter {name} of its route")
        source, modules = self.source(e, node, [node])
        self.add(e, {
            "name": node.name, "line": node.lineno, "column": node.col_offset + 1, "summary": summary(node), "params": params, "variadic": variadic,
            "source": source, "modules": modules, **route,
        })

    def methods(self, e, node):
        own = [m for m in node.body if isinstance(m, FUNCTIONS)]
        plain = {m.name: {getattr(d, "id", getattr(d, "attr", "")) for d in m.decorator_list} for m in own}
        served = [m for m in own if not m.name.startswith("_") and not plain[m.name] & {"property", "cached_property"}]
        source, modules = self.source(e, node, served)
        for m in own:
            if m.name == "__init__" and any(p["required"] for p in parameters(m, self.names, bound=True)[0]):
                raise Fault(m, f"{node.name} is created without arguments, so the parameters of __init__ must have defaults")
        for m in served:
            params, variadic = parameters(m, self.names, bound="staticmethod" not in plain[m.name])
            self.add(e, {
                "name": m.name, "class": node.name, "line": m.lineno, "column": m.col_offset + 1, "summary": summary(m) or summary(node),
                "params": params, "variadic": variadic, "source": source, "modules": modules,
            })

    def add(self, e, function):
        global functions
        functions += 1
        if functions > MAX_FUNCTIONS:
            raise Fault((function["line"], function["column"]), f"the project has more than {MAX_FUNCTIONS} functions")
        e["functions"].append(function)

    def source(self, e, node, called):
        """Returns the source that a worker runs, and the local modules that it imports. Code that must fail there is a fault."""
        for f in called:
            if place := yields_in(f):
                raise Fault(place, f"{f.name} is a generator, but a worker cannot return its values; return a list")
        bare = copy.copy(node)
        bare.decorator_list = []
        needed = self.needed(node, bare)
        early = any(names_of(n, 0)[1] - names_of(n)[1] - BUILTINS for n in needed + [bare])  # names of annotations
        head = "from __future__ import annotations\n" if early else ""
        text = "".join(self.lines[node.lineno - 1:node.end_lineno])
        imports = [i for n in needed + [bare] for i in imports_in(n)]
        for i in imports:
            self.check_import(i)
        modules = modules_of(imports, self.path, e["options"].get("dependencies", []))
        return head + "".join(ast.unparse(n) + "\n" for n in needed) + textwrap.dedent(text).rstrip("\n") + "\n", modules

    def check_import(self, i):
        """Refuses the import of another file's endpoint, whose function a worker cannot call."""
        at = ast.Name("", lineno=i.at[0], col_offset=i.at[1])
        for name in i.names or []:
            try:
                kind, stem, home = self.names.module(i.module, i.level, at)
                kind, node, home = self.names.member(stem, name, at, 0) if kind == "module" else (kind, stem, home)
            except Fault:
                continue
            if kind in ("function", "class") and any((symbol(getattr(d, "func", d), home) or [""])[-1] == "Endpoint" for d in node.decorator_list):
                raise Fault(i.at, f"{name} belongs to another endpoint, in {home.path}, whose code is not on the worker; call the endpoint over HTTP")

    @functools.cached_property
    def statements(self):
        """The statements of the top level that run where the file is imported."""
        def is_main(n):
            return isinstance(n, ast.If) and not n.orelse and "__name__" in ast.unparse(n.test)
        effects = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete)
        return [
            Statement(n, *names_of(n), changes_in(n) if isinstance(n, effects) else {})
            for n in self.tree.body if not is_typing(n) and not is_main(n)
        ]

    @functools.cached_property
    def bindings(self):
        """The statements that bind each name, and those that change the value of a variable."""
        found = {}
        for s in self.statements:
            for name in s.binds | s.changes.keys():
                found.setdefault(name, []).append(s)
        return found

    def needed(self, node, bare):
        """Returns the statements of the file that a function needs, in order."""
        own, uses = names_of(bare)
        chosen, seen, waiting = set(), set(), [(name, bare) for name in sorted(uses)]
        while waiting:
            name, user = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            found = [s for s in self.bindings.get(name, []) if s.node is not node]
            if not any(isinstance(s.node, (ast.Assign, ast.AnnAssign)) and name in s.binds for s in found):
                found = [s for s in found if name in s.binds]  # an object of a module is not made anew
            if not found and name not in BUILTINS and name not in own:
                found = [s for s in self.statements if isinstance(s.node, ast.ImportFrom) and s.node.names[0].name == "*"]
                if not found and (place := use_of(name, user)):
                    raise Fault(place, f"{name} is not defined" + (", because a worker runs the source without its file" if name == "__file__" else ""))
            for s in found:
                if self.variable(s.node) or any(self.toolkit(d) or self.routed(d) for d in getattr(s.node, "decorator_list", [])):
                    raise Fault(use_of(name, user) or user, f"{name} belongs to another endpoint, whose code is not on the worker; call the endpoint over HTTP")
                if id(s) not in chosen:
                    chosen.add(id(s))
                    waiting += [(used, s.node) for used in sorted(s.uses)]
        return [s.node for s in self.statements if id(s) in chosen]

    def unserved(self):
        """Adds a notice for each call that looks like an endpoint and is not served."""
        late = {}  # names of the toolkit that are not imported at the top level
        for n in ast.walk(self.tree):
            if isinstance(n, ast.ImportFrom) and n.module and TOOLKIT.fullmatch(n.module.split(".")[0]):
                late.update((a.asname or a.name, n.lineno) for a in n.names if a.name in ("Endpoint", "remote", "*"))
            elif isinstance(n, ast.Import):
                late.update((a.asname or a.name.split(".")[0], n.lineno) for a in n.names if TOOLKIT.fullmatch(a.name.split(".")[0]))
        for statement in self.tree.body:
            decorators = getattr(statement, "decorator_list", [])
            for n in ast.walk(statement):
                if isinstance(n, ast.Call) and id(n) not in self.read_calls and (why := self.missed(n, statement, n in decorators, late)):
                    notice(self.path, Fault(n, "not served: " + why))

    def missed(self, call, statement, decorates, late):
        """Returns why a call that looks like an endpoint's is not served, or None if it does not."""
        called, names = symbol(call.func, self.names), ast.unparse(call.func).split(".")
        if any(k.arg == "id" for k in call.keywords):
            return None  # a client of an endpoint
        if called and called[-1] == "remote":
            return "remote is not supported; use Endpoint"
        if called and called[-1] == "Endpoint":
            if isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign)) or decorates:
                return "only `name = Endpoint(...)` and decorators are read"
            return f"it is inside the statement of line {statement.lineno}; endpoints are read at the top level of a file"
        if not called and names[0] in late and (len(names) == 1 or names[-1] == "Endpoint"):
            return f"the toolkit's import at line {late[names[0]]} is not at the top level of the file"
        if not called and names[-1] == "Endpoint" and self.is_unclear(call.func, names[0]):
            return f"where {ast.unparse(call.func)} comes from is uncertain; import it from the toolkit by name"
        if isinstance(call.func, ast.Attribute) and call.func.attr in METHODS and isinstance(call.func.value, ast.Name):
            return self.misrouted(call, statement, decorates)
        return None

    def is_unclear(self, node, root):
        """Reports whether a name may come from another file of the project that does not bind it for certain."""
        kind, value, level = self.names.bound.get(root, ("", None, 0))
        try:
            self.names.resolve(node)
            return False
        except Fault:
            stars = [n for n in self.tree.body if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]
        try:
            if kind in ("import", "from"):
                self.names.module(*((value, level) if kind == "import" else (value.module or "", value.level)), node)
            return kind in ("import", "from") or not kind and bool(stars)
        except Fault:
            return False

    def misrouted(self, call, statement, decorates):
        """Returns why a call of an endpoint's method makes no route, or None if it is not to make one."""
        try:
            kind, value, home = self.names.resolve(call.func.value)
        except Fault:
            return None
        if kind != "value" or (symbol(getattr(value, "func", None), home) or [""])[-1] != "Endpoint":
            return None
        if home is not self.names and decorates:
            return f"{call.func.value.id} is an endpoint of {home.path}; define its routes there"
        nested = isinstance(statement, FUNCTIONS + (ast.ClassDef,)) and not any(call in getattr(n, "decorator_list", []) for n in ast.walk(statement))
        if home is not self.names or nested or any(k.arg in ("id", "image") for k in value.keywords):
            return None
        return "only decorators of functions at the top level of a file make routes"


def notice(path, f):
    notices.append(located(path, f, str(f)))


files, functions = [], 0
warnings.simplefilter("ignore")
read = file = None
for path in project_files():
    read = file = None  # one tree at a time
    read = parse(path)
    if read is None or not RELEVANT.search(read[0]):
        continue
    read = parse(path, whole=True)
    if read is None:
        continue
    file = File(path, *read)
    try:
        file.read()
        file.finish()
    except (RecursionError, MemoryError) as e:
        fault(path, Fault((0, 0), f"cannot be read: {type(e).__name__}"))
    if not file.endpoints:
        continue
    if not all(SEGMENT.fullmatch(part) for part in path[:-len(".py")].split("/")):
        fault(path, Fault((0, 0), "not served: routes contain the file's path, which must consist of letters, digits, _, . and -"))
        continue
    files.append({"path": path, "endpoints": file.endpoints})

used = {name for f in files for e in f["endpoints"] for fn in e["functions"] for name in fn.get("modules", {}).values()}
print(json.dumps({
    "python": "%d.%d" % sys.version_info[:2], "files": files, "faults": faults, "notices": notices,
    "modules": {name: sources[name][0] for name in sorted(used)},
}, allow_nan=False))
