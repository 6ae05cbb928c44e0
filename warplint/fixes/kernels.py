"""Kernels as text: their parameters, the types of their locals, and room for one more parameter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from warplint.fixes.arguments import parameters
from warplint.fixes.project import Launch
from warplint.fixes.source import Change, Source

__all__ = [
    "add_argument",
    "add_parameter",
    "annotation",
    "assignments",
    "components",
    "element_type",
    "is_func",
    "is_kernel",
    "module_number",
    "type_of",
]

_LONGEST = 88
_VECTOR = re.compile(r"(?:(?:vec|quat|spatial_vector)(\d?)[fdh]?|mat(\d)(\d)[fdh]?)$")
_SAME_TYPE = frozenset({"normalize", "cross", "min", "max", "abs", "sign", "quat_rotate"})
_SCALAR = frozenset({"dot", "length", "length_sq", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "pow"})


def is_kernel(source: Source, function: ast.FunctionDef) -> bool:
    return _decorated(source, function, "kernel")


def is_func(source: Source, function: ast.FunctionDef) -> bool:
    return _decorated(source, function, "func")


def _decorated(source: Source, function: ast.FunctionDef, name: str) -> bool:
    return any(
        source.is_warp(d.func if isinstance(d, ast.Call) else d, name) for d in function.decorator_list
    )


def annotation(source: Source, function: ast.FunctionDef, name: str) -> str | None:
    """The type of a parameter, as it is written."""
    for parameter in parameters(function):
        if parameter.arg == name and parameter.annotation is not None:
            return source.segment(parameter.annotation)
    return None


def element_type(source: Source, function: ast.FunctionDef, name: str) -> str | None:
    """What the elements of an array parameter are: ``wp.vec3`` of ``wp.array(dtype=wp.vec3)``."""
    node = next((p.annotation for p in parameters(function) if p.arg == name), None)
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                return source.segment(keyword.value)
    if isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Name, ast.Attribute)):
        return source.segment(node.slice)
    return None


def assignments(function: ast.FunctionDef, name: str) -> list[ast.Assign]:
    """The plain assignments to a local, in order."""
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == name
    ]


def type_of(source: Source, function: ast.FunctionDef, node: ast.expr, depth: int = 6) -> str | None:
    """The type of an expression of a kernel, as an annotation; None where it is not plain to see."""
    if depth == 0:
        return None

    def inner(other: ast.expr) -> str | None:
        return type_of(source, function, other, depth - 1)

    if isinstance(node, ast.Constant):
        kinds = {bool: "bool", int: "int", float: "float"}
        return kinds.get(type(node.value))
    if isinstance(node, ast.Name):
        given = annotation(source, function, node.id)
        if given is not None:
            return given
        if any(isinstance(n, ast.For) and _is_name(n.target, node.id) for n in ast.walk(function)):
            return "int"
        found = assignments(function, node.id)
        return inner(found[0].value) if found else _unpacked(source, function, node.id)
    if isinstance(node, ast.Subscript):
        if isinstance(node.value, ast.Name):
            element = element_type(source, function, node.value.id)
            if element is not None:
                return element
        whole = inner(node.value)
        vector = _VECTOR.search(whole or "")
        return "float" if vector and not (vector.group(2) and not isinstance(node.slice, ast.Tuple)) else None
    if isinstance(node, ast.UnaryOp):
        return inner(node.operand)
    if isinstance(node, ast.BinOp):
        return _of_operation(node, inner(node.left), inner(node.right))
    if isinstance(node, ast.Call):
        return _of_call(source, node, [inner(a) for a in node.args])
    return None


def _of_operation(node: ast.BinOp, left: str | None, right: str | None) -> str | None:
    if left is None or right is None:
        return None
    for one, other in ((left, right), (right, left)):
        if one in ("int", "float"):
            return other
    if isinstance(node.op, ast.Mult) and "mat" in left and "vec" in right:
        return right
    return left


def _of_call(source: Source, node: ast.Call, given: Sequence[str | None]) -> str | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in ("int", "float"):
        return name
    if _VECTOR.match(name):
        return source.segment(node.func)
    if name == "tid":
        return "int"
    if name in _SAME_TYPE and given:
        return given[-1] if name == "quat_rotate" else given[0]
    return "float" if name in _SCALAR else None


def _unpacked(source: Source, function: ast.FunctionDef, name: str) -> str | None:
    """``i, j = wp.tid()``"""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [getattr(e, "id", "") for e in node.targets[0].elts]
            if name in names and isinstance(node.value, ast.Call) and source.is_warp(node.value.func, "tid"):
                return "int"
    return None


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def components(type_name: str, whole: str) -> list[str] | None:
    """The components of a value of this type, in the order its constructor takes them."""
    found = _VECTOR.search(type_name)
    if found is None:
        return None
    if found.group(2):
        rows, columns = int(found.group(2)), int(found.group(3))
        return [f"{whole}[{r}, {c}]" for r in range(rows) for c in range(columns)]
    count = int(found.group(1) or 4) if "vec" in type_name or "quat" in type_name else 0
    return [f"{whole}[{k}]" for k in range(count)] if count and "spatial" not in type_name else None


def module_number(source: Source, name: str) -> int | None:
    """The value of a module-level constant that is an int and is set once."""
    found = [
        node.value
        for node in source.tree.body
        if isinstance(node, ast.Assign)
        and any(_is_name(t, name) for target in node.targets for t in _each(target))
    ]
    values = list(_constants(source, name))
    if len(found) == 1 and len(values) == 1:
        return values[0]
    return None


def _constants(source: Source, name: str) -> Iterator[int]:
    for node in source.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            targets = list(_each(node.targets[0]))
            several = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            values = list(node.value.elts) if several and isinstance(node.value, ast.Tuple) else [node.value]
            for target, value in zip(targets, values, strict=False):
                if _is_name(target, name) and isinstance(value, ast.Constant) and type(value.value) is int:
                    yield value.value


def _each(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        yield from target.elts
    else:
        yield target


# -- one more parameter ------------------------------------------------------------------------


def add_parameter(source: Source, function: ast.FunctionDef, after: int, text: str) -> Change:
    """A parameter behind the one at a position, laid out as the others are."""
    given = parameters(function)
    last = given[after]
    end = source.end(last)
    begin = source.starts[source.line_of(source.start(last)) - 1]
    line_end = source.text.find("\n", end)
    line = source.text[begin : line_end if line_end >= 0 else len(source.text)].rstrip("\r\n")
    blanks = line[: len(line) - len(line.lstrip(" \t"))]
    own_line = source.text[begin : source.start(last)].strip(" \t") == ""
    alone = own_line and line[end - begin :].partition("#")[0].strip() in (",", "")
    if alone and len({source.line_of(source.start(p)) for p in given}) == len(given):
        return Change(source.display, end, end, f",{source.newline}{blanks}{text}")
    if len(line) + len(text) + 2 <= widest(source):
        return Change(source.display, end, end, f", {text}")
    # Too long for a line: one parameter a line, as formatters write it.
    texts = [source.segment(p) for p in given]
    texts.insert(after + 1, text)
    inner = blanks + source.unit(function)
    start = source.start(given[0])
    stop = source.text.index(")", source.end(given[-1]))
    if source.text[source.end(given[-1]) : stop].strip(" \t,\r\n") or function.args.defaults:
        return Change(source.display, end, end, f", {text}")
    first_line = source.starts[source.line_of(start) - 1]
    if not source.text[first_line:start].strip(" \t"):  # all on one line, in parentheses of their own
        rest = source.starts[source.line_of(stop) - 1]
        rows = f",{source.newline}{blanks}".join(texts)
        if rest > source.end(given[-1]):
            return Change(source.display, start, rest, f"{rows},{source.newline}")
        return Change(source.display, start, stop, rows)
    rows = "".join(f"{inner}{t},{source.newline}" for t in texts)
    return Change(source.display, start, stop, f"{source.newline}{rows}{blanks}")


def widest(source: Source) -> int:
    """How long lines of this file may become."""
    return max(_LONGEST, *(len(line) for line in source.text.splitlines() or [""]))


def add_argument(launch: Launch, text: str, *, last: bool = False) -> Change:
    """One more argument of a launch, on lines of their own where one would become too long."""
    change = launch.append_last(text) if last else launch.append(text)
    source, call = launch.source, launch.call
    if call.lineno != call.end_lineno:
        return change
    begin = source.starts[call.lineno - 1]
    line = source.text[begin : source.end(call)]
    if len(line) + len(change.text) <= widest(source) or not source.owns_lines(source.statement(call)):
        return change
    start = source.start(call)
    parts = [*call.args, *call.keywords]
    texts = []
    for part in sorted(parts, key=source.start):
        begin, end = source.start(part), source.end(part)
        words = source.text[begin:end]
        if begin <= change.start <= end:
            words = words[: change.start - begin] + change.text + words[change.start - begin :]
        texts.append(words)
    indent = source.indent(source.statement(call))
    inner = indent + source.unit(source.statement(call))
    rows = "".join(f"{inner}{t},{source.newline}" for t in texts)
    head = source.text[start : source.end(call.func)]
    return Change(source.display, start, source.end(call), f"{head}({source.newline}{rows}{indent})")
