"""WL204: a kernel reads the array itself, instead of a number that the host took from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

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
    for inner in method_calls(node if isinstance(node, ast.Call) else statement, "numpy"):
        read = _read(source, inner)
        if read is None:
            continue
        array, index, whole = read
        named = isinstance(statement, ast.Assign) and statement.value is whole
        target = statement.targets[0] if isinstance(statement, ast.Assign) and named else None
        if isinstance(target, ast.Name):
            scope = source.scope_of(statement)
            uses = source.loads(scope, target.id)
            for changes, passed in _handed(problem, source, index, list(uses)):
                changes += [source.replace(a, array) for a in passed]
                if len(uses) == len(passed):
                    changes.append(source.delete(statement))
                yield problem.project.candidate("hand the array to the kernel", changes)
        else:
            for changes, passed in _handed(problem, source, index, [whole]):
                changes += [source.replace(a, array) for a in passed]
                yield problem.project.candidate("hand the array to the kernel", changes)


def _handed(
    problem: Problem, source: Source, index: str, reads: Sequence[ast.expr]
) -> Iterator[tuple[list[Change], list[ast.expr]]]:
    """Kernels one of whose parameters is given the number at every launch: the change, and where."""
    for where, kernel in _kernels(problem):
        launches = problem.project.launches(kernel)
        if not launches or not all(launch.plain and launch.source is source for launch in launches):
            continue
        for position, parameter in enumerate(parameters(kernel)):
            passed = [x.arguments[position] for x in launches if position < len(x.arguments)]
            if passed and parameter.annotation is not None and all(a in reads for a in passed):
                yield _changes(where, kernel, parameter, index), passed


def _kernels(problem: Problem) -> Iterator[tuple[Source, ast.FunctionDef]]:
    for name in problem.quoted:
        for source, function in problem.project.functions(name):
            if is_kernel(source, function):
                yield source, function


def _read(source: Source, call: ast.Call) -> tuple[str, str, ast.expr] | None:
    """The array and the element that ``float(x.numpy()[1])`` takes, and the whole of the expression."""
    if not isinstance(call.func, ast.Attribute):
        return None
    array, index = source.segment(call.func.value), "0"
    whole: ast.expr = call
    parent = source.parents[whole]
    if isinstance(parent, ast.Subscript):
        if not isinstance(parent.slice, ast.Constant) or not isinstance(parent.slice.value, int):
            return None
        index, whole = str(parent.slice.value), parent
    elif isinstance(parent, ast.Attribute) and parent.attr == "item":
        around = source.parents[parent]
        whole = around if isinstance(around, ast.Call) else whole
    parent = source.parents[whole]
    if isinstance(parent, ast.Call) and getattr(parent.func, "id", "") == "float":
        whole = parent
    return array, index, whole


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
