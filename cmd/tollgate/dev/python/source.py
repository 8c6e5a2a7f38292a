"""Reads the Python files of a project and says what their names stand for.

It is put in front of read.py. Nothing of the project is imported or run: files are
parsed, and compiled to find the names that statements use. Of a file that was read, its
text and its imports are kept: its tree takes up to 560 times the memory of its text.
"""

import __future__
import ast
import builtins
import copy
import dis
import functools
import io
import json
import os
import re
import stat
import sys
import textwrap
import tokenize
import types
import warnings
from typing import NamedTuple

ROOT = sys.argv[1]
MAX_FILES, MAX_BYTES, MAX_TOTAL, MAX_FUNCTIONS, MAX_MODULES = map(int, sys.argv[2:7])
SKIPPED = {"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist"}
TOOLKIT = re.compile(r"[a-z0-9]+_flash")
PUBLIC = ("Endpoint", "remote", "GpuGroup", "GpuType", "CpuInstanceType", "DataCenter", "CudaVersion", "ServerlessScalerType", "NetworkVolume", "PodTemplate")
BUILTINS = {*dir(builtins), "__annotations__", "__conditional_annotations__"}
LAZY = __future__.annotations.compiler_flag
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DYNAMIC = re.compile(r"\b(__getattr__|__path__|__dict__|exec|eval|globals|locals|vars|setattr|modules)\b|import\s*\*")  # may bind names unseen
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault", "sort", "update"}

faults, notices, sources, broken, compiled = [], [], {}, {}, set()
total = 0  # bytes of the files that were read


class Fault(Exception):
    """A fault, and the line and the column that it is at."""

    def __init__(self, at, text):
        super().__init__(text)
        self.line, self.column = at if isinstance(at, tuple) else (at.lineno, at.col_offset + 1)


def located(path, at, text):
    return {"file": path, "line": at.line, "column": at.column, "text": text}


def fault(path, f):
    faults.append(located(path, f, str(f)))


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
                fault("", Fault((0, 0), f"the project has more than {MAX_FILES} Python files; use a directory with fewer files"))
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
            raise Fault((0, 0), "not a regular file")
        raw = f.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise Fault((0, 0), f"exceeds {MAX_BYTES} bytes")
    total += len(raw)
    if total > MAX_TOTAL:
        raise Fault((0, 0), f"not read: the Python files exceed {MAX_TOTAL} bytes in total; use a directory with fewer files")
    return raw


def parse(path, whole=False):
    """Returns the text and the tree of a file, or None with a fault; whole finds the compiler's faults, too."""
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
        if whole:
            compile(tree, path, "exec", dont_inherit=True)
            compiled.add(path)
        if path not in sources:  # what functions of a module import may never be imported
            sources[path] = (text, [i for s in tree.body for i in imports_in(s, isinstance(s, FUNCTIONS + (ast.ClassDef,)))])
        return text, tree
    except Fault as e:
        f = e
    except SyntaxError as e:
        f = Fault((e.lineno or 0, e.offset or 0), e.msg if e.msg.startswith("invalid syntax") else f"invalid syntax: {e.msg}")
    except (OSError, ValueError, LookupError, RecursionError, MemoryError) as e:
        f = Fault((0, 0), f"cannot be read: {type(e).__name__}: {e}")
    broken[path] = f
    fault(path, f)
    return None


# Imports.


class Import(NamedTuple):
    """One import. names is None for `import module`; guarded imports may fail."""

    at: tuple
    level: int
    module: str
    names: list
    guarded: bool

    def __str__(self):
        if self.names is None:
            return f"import {self.module}"
        return f"from {'.' * self.level}{self.module} import {', '.join(self.names)}"


def is_typing(node):
    """Reports whether a statement is for type checkers alone."""
    return isinstance(node, ast.If) and not node.orelse and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING"


def imports_in(node, guarded=False):
    """Returns the imports of a tree, those by a literal name of importlib included."""
    at = (getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1)
    if isinstance(node, ast.Import):
        return [Import(at, 0, a.name, None, guarded) for a in node.names]
    if isinstance(node, ast.ImportFrom):
        return [Import(at, node.level, node.module or "", [a.name for a in node.names], guarded)]
    found = []
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("import_module", "__import__"):
        if node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str) and not node.args[0].value.startswith("."):
            found.append(Import(at, 0, node.args[0].value, None, True))
    if is_typing(node):
        return found
    for name, value in ast.iter_fields(node):
        caught = guarded or isinstance(node, ast.Try) and name == "body" and bool(node.handlers)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                found += imports_in(child, caught)
    return found


def file_of(stem):
    """Returns the file of a module whose path has no ending, or None."""
    return next((f for f in (stem + ".py", stem + "/__init__.py") if inside(f)), None)


def is_directory(stem):
    return bool(stem) and os.path.isdir(os.path.join(ROOT, stem))


def modules_of(imports, path, dependencies):
    """Returns the local modules that a function imports, by the path that its worker has for each.

    A worker finds modules from the directory of the function's file, then from that of
    the project. An import that must fail there is a fault, at the function's own import.
    """
    base = path[:path.rfind("/") + 1]
    external = {re.split(r"[^A-Za-z0-9_.-]", d)[0].replace("-", "_").lower() for d in dependencies}
    found, size = {}, 0
    waiting = [(i, i, base, "") for i in imports]  # the function's import, one that follows from it, and the module of that
    while waiting:
        first, i, place, origin = waiting.pop()
        try:
            for here, file in imported(i, place, origin, base, external):
                parts = file[len(here):].split("/")
                packages = ["/".join(parts[:n]) + "/__init__.py" for n in range(1, len(parts))]
                for key in [file[len(here):]] + [p for p in packages if inside(here + p)]:
                    if key in found:
                        continue
                    found[key] = here + key
                    text, more = known(here + key)
                    size += len(text.encode())
                    if size > MAX_MODULES:
                        raise Fault(i.at, f"the local modules of a function have more than {MAX_MODULES} bytes")
                    waiting += [(first, j, here, key) for j in more]
        except Fault as e:
            raise Fault(first.at, f"{place}{origin}:{e.line}:{e.column}: {e}" if origin else str(e)) from None
    return dict(sorted(found.items()))


def known(path):
    """Returns the text and the imports of a module, which must be free of faults."""
    if path not in compiled and parse(path, whole=True) is None:
        f = broken[path]
        raise Fault((f.line, f.column), f"{path}, which is imported, has a fault: {f}")
    return sources[path]


def is_local(stem):
    """Reports whether a path is a module of the project, or a directory with such."""
    return file_of(stem) or is_directory(stem) and any(n.endswith(".py") and inside(f"{stem}/{n}") for n in os.listdir(os.path.join(ROOT, stem)))


@functools.cache
def bound_in(path):
    """Returns the names that a module binds, or None if it may bind more than its statements show."""
    if DYNAMIC.search(known(path)[0]):
        return None
    return frozenset(name for node in parse(path, whole=True)[1].body for name in names_of(node)[0])


def lacks(stem, name):
    """Reports whether a module or a package certainly has no such name."""
    if re.fullmatch(r"\*|__\w+__", name) or file_of(f"{stem}/{name}") or is_directory(f"{stem}/{name}"):
        return False
    names = bound_in(file) if (file := file_of(stem)) else ()
    return names is not None and name not in names


def check_found(i, stems):
    """Refuses an import that must fail: of no module, or of a name that is in none of the modules at the stems."""
    there = [s for s in stems if file_of(s) or is_directory(s)]
    if not there:
        raise Fault(i.at, f"`{i}` does not name a module of the project")
    for name in i.names or []:
        if all(lacks(s, name) for s in there):
            raise Fault(i.at, f"`{i}` fails on a worker: {file_of(there[0]) or there[0]} has no {name}")


def imported(i, place, origin, base, external):
    """Yields the place and the file of each module that an import of a module at a place names; without origin the import is the function's."""
    names = [i.module] if i.module else []
    names += [f"{i.module}.{n}".lstrip(".") for n in i.names or [] if n != "*"]
    stems = [n.replace(".", "/") for n in names]
    start = base or "the project"
    if i.level:
        package = origin.split("/")[:-1]
        if i.level > len(package):
            if not i.guarded:
                raise Fault(i.at, f"`{i}` fails on a worker, where the code is not part of a package: import by the path from {start}")
            return
        above = place + "".join(p + "/" for p in package[:len(package) - i.level + 1])
        if not i.guarded:
            check_found(i, [(above + i.module.replace(".", "/")).rstrip("/")])
        yield from ((place, f) for s in stems if (f := file_of(above + s)))
        return
    root = stems[0].split("/")[0] if stems else ""
    if root in sys.stdlib_module_names or TOOLKIT.fullmatch(root):
        return
    if not i.guarded and root.lower() not in external and root not in SKIPPED and any(is_local(p + root) for p in (base, "")):
        check_found(i, [p + stems[0] for p in (base, "")])
    for s in stems:
        if match := next(((p, f) for p in (base, "") if (f := file_of(p + s))), None):
            yield match
    beside = file_of((place + origin)[:(place + origin).rfind("/") + 1] + root) if origin else None
    if beside not in (None, place + origin) and not i.guarded and root.lower() not in external and not any(file_of(p + root) or is_directory(p + root) for p in (base, "")):
        raise Fault(i.at, f"`{i}` fails on a worker, which finds modules from {start} on: import {beside} by its path from there")


# Names of statements.


class Statement(NamedTuple):
    """A statement of a file, with the names that it binds, uses, and changes in place."""

    node: ast.stmt
    binds: frozenset
    uses: frozenset
    changes: dict


def names_of(node, flags=LAZY):
    """Returns the global names that a statement binds, and those that it uses, as the compiler sees them."""
    binds, uses = set(), set()

    def visit(code, top):
        operations = [(o.opname, o.argval) for o in dis.get_instructions(code)]
        own = {name for op, name in operations if op == "STORE_NAME"}
        binds.update(name for op, name in operations if op in ("STORE_GLOBAL", "DELETE_GLOBAL") or top and op in ("STORE_NAME", "DELETE_NAME"))
        uses.update(name for op, name in operations if op in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS") and (top or name not in own))
        for c in code.co_consts:
            if isinstance(c, types.CodeType):
                visit(c, False)

    visit(compile(ast.Module([node], []), "file", "exec", flags=flags, dont_inherit=True), True)
    return frozenset(binds), frozenset(uses)


def changes_in(node, hidden=frozenset()):
    """Returns the global names whose values a tree changes in place, with a place where it does."""
    found, target = {}, None
    if isinstance(node, FUNCTIONS + (ast.Lambda,)):
        inner = list(ast.walk(node))
        shared = {n for g in inner if isinstance(g, ast.Global) for n in g.names}
        found.update((n, node) for n in shared)
        hidden = hidden | {a.arg for a in inner if isinstance(a, ast.arg)} | {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - shared
    elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        target = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        target = node.func.value
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    if isinstance(target, ast.Name) and target.id not in hidden:
        found[target.id] = node
    for child in ast.iter_child_nodes(node):
        for name, place in changes_in(child, hidden).items():
            found.setdefault(name, place)
    return found


def use_of(name, node):
    """Returns the first place that evaluates a name, or None if each may fail: in a try, or an annotation."""
    if isinstance(node, ast.Name) and node.id == name:
        return node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns") or isinstance(node, ast.Try) and field == "body" and node.handlers:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and (found := use_of(name, child)):
                return found
    return None


# What names stand for.


class Names:
    """The names of a file at a point of it, and what binds each."""

    def __init__(self, path, tree):
        self.path, self.tree, self.bound, self.changed = path, tree, {}, None

    def bind(self, node):
        """Takes a statement of the file's top level."""
        if isinstance(node, ast.Import):
            for a in node.names:
                root = a.name.split(".")[0]
                self.bound[a.asname or root] = ("import", a.name if a.asname else root, 0)
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                if a.name != "*":
                    self.bound[a.asname or a.name] = ("from", node, a.name)
                elif node.module and TOOLKIT.fullmatch(node.module.split(".")[0]):
                    self.bound.update((name, ("from", node, name)) for name in PUBLIC)
        elif isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
            self.bound.update((t.id, ("value", node.value, 0)) for t in node.targets)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is not None:
                self.bound[node.target.id] = ("value", node.value, 0)
        elif isinstance(node, FUNCTIONS + (ast.ClassDef,)):
            self.bound[node.name] = ("class" if isinstance(node, ast.ClassDef) else "function", node, 0)
        else:
            self.bound.update((name, ("unknown", node, 0)) for name in names_of(node)[0])

    def resolve(self, node, depth=0):
        """Returns what a name stands for: (kind, value, names). A kind is value, class, function, module or toolkit."""
        if depth > 20:
            raise Fault(node, "nested too deeply")
        if isinstance(node, ast.Attribute):
            kind, value, home = self.resolve(node.value, depth + 1)
            if kind == "toolkit":
                return kind, value + [node.attr], home
            if kind == "module":
                return self.member(value, node.attr, node, depth)
            if kind == "class" and not value.bases and not value.keywords and not value.decorator_list:
                body = Names(home.path, value)
                for statement in value.body:
                    body.bind(statement)
                kind, value, _ = body.bound.get(node.attr, ("unknown", node, 0))
                if kind == "value":
                    return kind, value, home
            raise Fault(node, f"{ast.unparse(node)} is not a constant of the project")
        if not isinstance(node, ast.Name) or node.id not in self.bound:
            raise Fault(node, f"{ast.unparse(node)[:60]} is not a constant of {self.path}")
        kind, value, level = self.bound[node.id]
        if kind == "import":
            kind, value, home = self.module(value, level, node)
        elif kind == "from":
            kind, value, home = self.imported(value, level, node, depth)
        else:
            home = self
        if kind != "toolkit" and kind != "unknown" and self.changed is None:
            self.changed = changes_in(self.tree)
        if kind == "unknown" or kind != "toolkit" and node.id in self.changed:
            line = (value if kind == "unknown" else self.changed[node.id]).lineno
            raise Fault(node, f"{node.id} is not a constant: line {line} of {self.path} may set or change it")
        return kind, value, home

    def imported(self, statement, name, node, depth):
        """Resolves a name that `from module import name` binds."""
        kind, value, home = self.module(statement.module or "", statement.level, node)
        return (kind, value + [name], home) if kind == "toolkit" else self.member(value, name, node, depth)

    def module(self, dotted, level, node):
        """Resolves a module: to its path without an ending, or to a part of the toolkit."""
        if TOOLKIT.fullmatch(dotted.split(".")[0]) and not level:
            return "toolkit", dotted.split("."), self
        here = self.path.split("/")[:-1]
        places = ([here[:len(here) - level + 1]] if level <= len(here) + 1 else []) if level else [here, []]
        if not level and dotted.split(".")[0] in sys.stdlib_module_names:
            places = []
        stems = {"/".join(place + list(filter(None, dotted.split(".")))) for place in places}
        found = sorted(s for s in stems if file_of(s) not in (None, self.path) or is_directory(s))
        if len(found) > 1:
            raise Fault(node, f"{ast.unparse(node)} may come from {found[0]} or {found[1]}")
        if not found:
            raise Fault(node, f"{ast.unparse(node)} is not a constant of the project")
        return "module", found[0], self

    def member(self, stem, name, node, depth):
        """Resolves a name of a module of the project."""
        names = names_in(file) if (file := file_of(stem)) else None
        if names and name in names.bound:
            return names.resolve(ast.copy_location(ast.Name(name, ast.Load()), node), depth + 1)
        below = f"{stem}/{name}".lstrip("/")
        if file_of(below) or is_directory(below):
            return "module", below, self
        raise Fault(node, f"{ast.unparse(node)} is not a constant of the project")


@functools.lru_cache(maxsize=8)
def names_in(path):
    """Returns the names of a module as its end has them, or None if it has a fault."""
    read = parse(path, whole=True)
    if read is None:
        return None
    names = Names(path, read[1])
    for node in read[1].body:
        names.bind(node)
    return names


