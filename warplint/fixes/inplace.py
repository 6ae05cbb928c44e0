"""WL108, WL301: a kernel overwrites what its own adjoint needs.

The kernel gets one more input, a copy of the array as it was, and reads that instead; the launches
hand in ``wp.clone(...)``, which the tape records.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.arguments import kernel_of, launch_in, parameters
from warplint.fixes.kernels import add_argument, add_parameter, annotation, is_kernel
from warplint.fixes.project import Candidate, Problem
from warplint.fixes.source import Change, Source

__all__ = ["FIXES", "in_parentheses"]

_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Mult: "*",
    ast.Div: "/",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Pow: "**",
    ast.Mod: "%",
    ast.FloorDiv: "//",
}


def separate_input(problem: Problem) -> Iterator[Candidate]:
    """Read from a copy of what is overwritten."""
    for source, kernel, name in _overwritten(problem):
        launches = problem.project.launches(kernel)
        if not launches or not all(launch.plain for launch in launches):
            continue
        given = [p.arg for p in parameters(kernel)]
        position = given.index(name)
        counts = {len(launch.inputs.elts) for launch in launches if launch.inputs and launch.outputs}
        last = len(counts) > 1
        after = counts.pop() - 1 if len(counts) == 1 else len(given) - 1
        if any(len(launch.arguments) != len(given) for launch in launches) or after < 0:
            continue
        for stop in _ends(source, kernel, name):
            other = source.fresh(kernel, f"{name}_in")
            changes = list(_reads(source, kernel, name, other, stop))
            if not changes:
                continue
            type_text = annotation(source, kernel, name)
            changes.append(add_parameter(source, kernel, after, f"{other}: {type_text}"))
            complete = True
            for launch in launches:
                clone = launch.source.warp("clone")
                complete = complete and clone is not None
                passed = launch.source.segment(launch.arguments[position])
                changes.append(add_argument(launch, f"{clone}({passed})", last=last))
            if complete:
                yield problem.project.candidate("read the old values from a copy", changes)


def _overwritten(problem: Problem) -> Iterator[tuple[Source, ast.FunctionDef, str]]:
    """Kernels and the parameters that they overwrite, as far as a result speaks of them."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    kernel = source.function_of(statement)
    if kernel is not None and is_kernel(source, kernel):
        stores = [
            s for s in ast.walk(statement) if isinstance(s, ast.Subscript) and isinstance(s.ctx, ast.Store)
        ]
        names = [n for s in stores if (n := _base(s)) is not None]
        yield from ((source, kernel, name) for name in dict.fromkeys(names) if _is_parameter(kernel, name))
        return
    launch = launch_in(source, statement)
    pair = kernel_of(launch, problem.project) if launch is not None else None
    if pair is None:
        return
    for node in ast.walk(pair[1]):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            name = _base(node)
            if name is not None and _is_parameter(pair[1], name):
                yield pair[0], pair[1], name


def _is_parameter(kernel: ast.FunctionDef, name: str) -> bool:
    return any(
        p.arg == name and p.annotation is not None and "array" in ast.unparse(p.annotation)
        for p in parameters(kernel)
    )


def _base(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _ends(source: Source, kernel: ast.FunctionDef, name: str) -> list[int]:
    """Up to where reads see the old values: the end of the first store, or of the last one."""
    ends = sorted(
        source.end(source.statement(node))
        for node in ast.walk(kernel)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _base(node) == name
    )
    return list(dict.fromkeys((ends[0], ends[-1]))) if ends else []


def _reads(source: Source, kernel: ast.FunctionDef, name: str, other: str, stop: int) -> Iterator[Change]:
    """Reads of an array become reads of another one."""
    for node in ast.walk(kernel):
        if isinstance(node, ast.AugAssign) and _base(node.target) == name and source.end(node) <= stop:
            target = source.segment(node.target)
            begin = source.text.index("=", source.end(node.target)) + 1
            symbol = _SYMBOLS.get(type(node.op))
            if symbol is None or isinstance(node.op, (ast.Add, ast.Sub)):
                continue
            value = in_parentheses(source, node.value)
            old = other + target[len(name) :]
            yield Change(source.display, source.end(node.target), begin, f" = {old} {symbol}")
            yield source.replace(node.value, value)
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            parent = source.parents[node]
            if not isinstance(parent, ast.Subscript) or _is_target(source, parent):
                continue
            if source.end(node) <= stop:
                yield source.replace(node, other)


def _is_target(source: Source, node: ast.AST) -> bool:
    """Whether a subscript is (part of) what is stored to."""
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node.ctx, ast.Store):
            return True
        node = source.parents[node]
    return False


def in_parentheses(source: Source, node: ast.expr) -> str:
    """An expression as a factor: in parentheses where it needs them and has none."""
    text = source.segment(node)
    if isinstance(node, (ast.Name, ast.Call, ast.Subscript, ast.Attribute, ast.Constant)):
        return text
    before, after = source.text[: source.start(node)].rstrip(), source.text[source.end(node) :].lstrip()
    if before.endswith("(") and after.startswith(")"):
        return text
    return f"({text})"


FIXES = {"WL108": separate_input, "WL301": separate_input}
