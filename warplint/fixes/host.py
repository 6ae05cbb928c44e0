"""WL204: a kernel reads the array itself, instead of a number that the host took from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.arguments import parameters
from warplint.fixes.kernels import is_kernel
from warplint.fixes.project import Candidate, Problem, method_calls
from warplint.fixes.source import Change, Source

__all__ = ["FIXES"]


def handed_over(problem: Problem) -> Iterator[Candidate]:
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return
    name = statement.targets[0].id
    read = _read(source, statement.value)
    if read is None:
        return
    array, index = read
    scope = source.scope_of(statement)
    uses = source.loads(scope, name)
    for kernel_source, kernel in _kernels(problem):
        given = parameters(kernel)
        launches = problem.project.launches(kernel)
        if not launches or not all(launch.plain and launch.source is source for launch in launches):
            continue
        for position, parameter in enumerate(given):
            passed = [launch.arguments[position] for launch in launches if position < len(launch.arguments)]
            if not passed or any(not isinstance(a, ast.Name) or a.id != name for a in passed):
                continue
            if any(source.scope_of(a) is not scope for a in passed) or parameter.annotation is None:
                continue
            changes = _changes(kernel_source, kernel, parameter, index)
            changes += [source.replace(a, array) for a in passed]
            if {id(u) for u in uses} == {id(a) for a in passed}:
                changes.append(source.delete(statement))
            yield problem.project.candidate("hand the array to the kernel", changes)


def _kernels(problem: Problem) -> Iterator[tuple[Source, ast.FunctionDef]]:
    for name in problem.quoted:
        for source, function in problem.project.functions(name):
            if is_kernel(source, function):
                yield source, function


def _read(source: Source, node: ast.expr) -> tuple[str, str] | None:
    """The array and the element that a host expression like ``float(x.numpy()[1])`` takes."""
    for call in method_calls(node, "numpy"):
        if not isinstance(call.func, ast.Attribute):
            continue
        array, parent = source.segment(call.func.value), source.parents[call]
        index = "0"
        if isinstance(parent, ast.Subscript):
            if not isinstance(parent.slice, ast.Constant) or not isinstance(parent.slice.value, int):
                return None
            index = str(parent.slice.value)
            parent = source.parents[parent]
        elif isinstance(parent, ast.Attribute) and parent.attr == "item":
            parent = source.parents[source.parents[parent]]
        if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "float":
            parent = source.parents[parent]
        return (array, index) if isinstance(parent, ast.Assign) else None
    return None


def _changes(source: Source, kernel: ast.FunctionDef, parameter: ast.arg, index: str) -> list[Change]:
    """The parameter becomes an array, and its uses an element of it."""
    assert parameter.annotation is not None
    kind = source.segment(parameter.annotation)
    array = source.warp("array") or "array"
    subscripted = any(isinstance(p.annotation, ast.Subscript) for p in parameters(kernel))
    text = f"{array}[{kind}]" if subscripted else f"{array}(dtype={kind})"
    changes = [source.replace(parameter.annotation, text)]
    for node in ast.walk(kernel):
        if isinstance(node, ast.Name) and node.id == parameter.arg and isinstance(node.ctx, ast.Load):
            changes.append(source.replace(node, f"{parameter.arg}[{index}]"))
    return changes


FIXES = {"WL204": handed_over}
