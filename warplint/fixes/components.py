"""WL302: a component of a local vector or matrix is assigned again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.kernels import components, type_of
from warplint.fixes.project import Candidate, Problem
from warplint.fixes.source import Change, Source

__all__ = ["FIXES"]

_FIELDS = {name: k for names in ("xyzw",) for k, name in enumerate(names)}


def component(problem: Problem) -> Iterator[Candidate]:
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    function = source.function_of(statement)
    if function is None or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return
    whole = _whole(statement)
    if whole is None:
        return
    name = source.segment(whole)
    again = [s for s in _statements(function) if (w := _whole(s)) is not None and source.segment(w) == name]
    added = [change for s in again if (change := _added(source, s)) is not None]
    if added:
        yield problem.project.candidate("add to the component in place", added)
    for group in ([statement], again):
        rebuilt = [change for s in group if (change := _rebuilt(source, function, s)) is not None]
        if len(rebuilt) == len(group):
            yield problem.project.candidate("build the value anew", rebuilt)
    config, module = source.warp("config"), _import_of_warp(source)
    if config is not None and module is not None:
        flag = f"{config}.enable_vector_component_overwrites = True"
        changes = [source.insert_after(module, "", flag)]
        yield problem.project.candidate("let components be overwritten", changes)


def _statements(function: ast.FunctionDef) -> list[ast.stmt]:
    return [s for s in ast.walk(function) if isinstance(s, (ast.Assign, ast.AugAssign))]


def _target(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.Assign):
        return statement.targets[0] if len(statement.targets) == 1 else None
    return statement.target if isinstance(statement, ast.AugAssign) else None


def _whole(statement: ast.stmt) -> ast.expr | None:
    """The vector whose component is assigned."""
    target = _target(statement)
    if isinstance(target, ast.Subscript) and isinstance(target.value, (ast.Name, ast.Attribute)):
        return target.value
    if isinstance(target, ast.Attribute) and target.attr in _FIELDS and isinstance(target.value, ast.Name):
        return target.value
    return None


def _added(source: Source, statement: ast.stmt) -> Change | None:
    """``v[0] = v[0] + x`` as ``v[0] += x``."""
    target = _target(statement)
    if not isinstance(statement, ast.Assign) or target is None:
        return None
    text, value = source.segment(target), statement.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, (ast.Add, ast.Sub)):
        return None
    symbol = "+=" if isinstance(value.op, ast.Add) else "-="
    first = value
    while isinstance(first.left, ast.BinOp) and type(first.left.op) is type(value.op):
        first = first.left
    if source.segment(first.left) == text:
        if first is not value and isinstance(value.op, ast.Sub):
            rest = f"({source.text[source.start(first.right) : source.end(value)].replace(' - ', ' + ')})"
            return (
                None
                if "-" in rest or "(" in rest[1:]
                else source.replace(statement, f"{text} {symbol} {rest}")
            )
        begin = source.start(first.right)
        begin -= len(source.text[:begin]) - len(source.text[:begin].rstrip("("))
        return source.replace(statement, f"{text} {symbol} {source.text[begin : source.end(statement)]}")
    if isinstance(value.op, ast.Add) and source.segment(value.right) == text:
        return source.replace(statement, f"{text} += {source.segment(value.left)}")
    return None


def _rebuilt(source: Source, function: ast.FunctionDef, statement: ast.stmt) -> Change | None:
    """``v[0] = x`` as ``v = wp.vec3(x, v[1], v[2])``."""
    whole, target = _whole(statement), _target(statement)
    if whole is None or target is None or not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return None
    kind = type_of(source, function, whole) or _field_type(source, whole)
    name = source.segment(whole)
    parts = components(kind, name) if kind else None
    position = _position(target, kind or "")
    if parts is None or kind is None or position is None or len(parts) > 4 or position >= len(parts):
        return None
    value = source.segment(statement.value)
    if isinstance(statement, ast.AugAssign):
        symbol = source.text[source.end(target) : source.start(statement.value)].replace("=", "").strip(" (")
        value = f"{parts[position]} {symbol} ({value})"
    parts[position] = value
    return source.replace(statement, f"{name} = {kind}({', '.join(parts)})")


def _position(target: ast.expr, kind: str) -> int | None:
    if isinstance(target, ast.Attribute):
        return _FIELDS.get(target.attr)
    index = target.slice if isinstance(target, ast.Subscript) else None
    if isinstance(index, ast.Constant) and isinstance(index.value, int):
        return index.value if "mat" not in kind else None
    if isinstance(index, ast.Tuple) and "mat" in kind:
        numbers = [e.value for e in index.elts if isinstance(e, ast.Constant) and isinstance(e.value, int)]
        columns = int(kind.rstrip("fdh")[-1])
        return numbers[0] * columns + numbers[1] if len(numbers) == 2 else None
    return None


def _field_type(source: Source, node: ast.expr) -> str | None:
    """The type of a field, from the struct that declares one of this name."""
    if not isinstance(node, ast.Attribute):
        return None
    found = {
        source.segment(field.annotation)
        for cls in source.nodes
        if isinstance(cls, ast.ClassDef)
        for field in cls.body
        if isinstance(field, ast.AnnAssign) and getattr(field.target, "id", "") == node.attr
    }
    return found.pop() if len(found) == 1 else None


def _import_of_warp(source: Source) -> ast.stmt | None:
    """The last import at the head of the module, behind that of Warp."""
    last, seen = None, False
    for statement in source.tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            seen = seen or any(a.name.partition(".")[0] == "warp" for a in statement.names)
            last = statement
        elif last is not None:
            break
    return last if seen else None


FIXES = {"WL302": component}
