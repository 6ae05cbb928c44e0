"""WL201, WL202, WL504: a flag that an allocation, a kernel or a module was given, or was not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.project import Candidate, Problem
from warplint.fixes.source import Change, Source

__all__ = ["FIXES"]


def requires_grad(problem: Problem) -> Iterator[Candidate]:
    """WL201: say ``requires_grad=True`` where the array is made."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    title = "allocate it with requires_grad=True"
    call = node if isinstance(node, ast.Call) else None
    for inner in ast.walk(node) if call is None else ():
        if isinstance(inner, ast.Call) and (call is None or source.is_warp(inner.func, *_ALLOCATIONS)):
            call = inner
            break
    if call is None:
        return
    yield from _said_by_helper(problem, source, call)
    for name, value in _said(call):
        if name == "requires_grad":
            yield problem.project.candidate(title, [source.replace(value, "True")])
            break
    else:
        yield problem.project.candidate(title, [_keyword(source, call, "requires_grad=True")])
    statement = source.statement(node)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        text = source.segment(statement.targets[0])
        change = source.insert_after(statement, f"{text}.requires_grad = True")
        yield problem.project.candidate("set requires_grad after the allocation", [change])


_ALLOCATIONS = ("zeros", "empty", "full", "ones", "array", "from_numpy", "clone", "zeros_like", "empty_like")


def _said_by_helper(problem: Problem, source: Source, call: ast.Call) -> Iterator[Candidate]:
    """``requires_grad=track``, with a parameter of the helper that allocates: say so at the calls."""
    value = dict(_said(call)).get("requires_grad")
    function = source.function_of(call)
    if not isinstance(value, ast.Name) or function is None:
        return
    calls = problem.project.calls(function) or []
    silent = [(s, c) for s, c in calls if value.id not in dict(_said(c))]
    if silent:
        changes = [_keyword(s, c, f"{value.id}=True") for s, c in silent]
        yield problem.project.candidate("allocate it with requires_grad=True", changes)


def _said(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    return ((k.arg, k.value) for k in call.keywords if k.arg)


def _keyword(source: Source, call: ast.Call, text: str) -> Change:
    """One more keyword argument, laid out as the ones before it."""
    arguments: list[ast.AST] = [*call.args, *(k.value for k in call.keywords)]
    end = source.end(call) - 1
    if not arguments:
        return Change(source.display, end, end, text)
    last = max(arguments, key=source.end)
    after = source.text[source.end(last) : end]
    if "," not in after.partition("#")[0]:
        at = source.end(last) + _closing(after)
        return Change(source.display, at, at, f", {text}")
    at = source.end(last) + after.index(",") + 1
    if source.line_of(source.end(last)) == source.line_of(end):
        return Change(source.display, at, at, f" {text},")
    first = source.starts[source.line_of(source.start(last)) - 1]
    blanks = source.text[first : first + len(source.text[first:]) - len(source.text[first:].lstrip(" \t"))]
    return Change(source.display, at, at, f"{source.newline}{blanks}{text},")


def _closing(after: str) -> int:
    """How far the parentheses around the last argument reach: they are no part of its node."""
    stripped = after.rstrip()
    return len(stripped) if stripped and not stripped.strip(")") else 0


def enable_backward(problem: Problem) -> Iterator[Candidate]:
    """WL202: compile the kernels with backward code."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    nodes: list[ast.AST] = [node, statement]
    nodes += getattr(statement, "decorator_list", [])
    nodes.append(source.tree)  # the options may have been put together elsewhere
    title = "compile with backward code"
    for outer in nodes:
        if isinstance(outer, ast.FunctionDef):
            continue
        for inner in ast.walk(outer):
            value: ast.expr | None = None
            if isinstance(inner, ast.keyword) and inner.arg == "enable_backward":
                value = inner.value
            elif isinstance(inner, ast.Dict):
                value = next(
                    (
                        v
                        for k, v in zip(inner.keys, inner.values, strict=True)
                        if isinstance(k, ast.Constant) and k.value == "enable_backward"
                    ),
                    None,
                )
            elif isinstance(inner, ast.Assign) and _is_flag(inner.targets[0]):
                value = inner.value
            if value is not None and not (isinstance(value, ast.Constant) and value.value is True):
                yield problem.project.candidate(title, [source.replace(value, "True")])
                return


def _is_flag(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "enable_backward"


def plain_gradient(problem: Problem) -> Iterator[Candidate]:
    """WL504: an array that is written more than once must not retain its gradient."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    title = "do not retain the gradient of an array that is written again"
    statement = source.statement(node)
    if _reads_gradient(source, statement):
        return  # without it the gradient would be read as zero
    if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "attr", "") == "retain_grad":
        yield problem.project.candidate(title, [source.replace(statement.value, "False")])
        return
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Call):
            for keyword in inner.keywords:
                if keyword.arg == "retain_grad":
                    yield problem.project.candidate(title, [_without(source, inner, keyword)])
                    yield problem.project.candidate(title, [source.replace(keyword.value, "False")])
                    return


def _reads_gradient(source: Source, statement: ast.stmt) -> bool:
    """Whether ``x.grad`` is looked at for an array that this statement makes."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    names = {source.segment(target) for target in targets}
    return any(
        isinstance(node, ast.Attribute) and node.attr == "grad" and source.segment(node.value) in names
        for node in source.nodes
    )


def _without(source: Source, call: ast.Call, keyword: ast.keyword) -> Change:
    """A call without one of its keyword arguments."""
    start, end = source.start(keyword), source.end(keyword)
    if any(source.end(a) < start for a in (*call.args, *call.keywords)):
        return Change(source.display, source.text.rindex(",", 0, start), end, "")
    following = [source.start(a) for a in call.keywords if source.start(a) > end]
    return Change(source.display, start, min(following, default=end), "")


FIXES = {"WL201": requires_grad, "WL202": enable_backward, "WL504": plain_gradient}
