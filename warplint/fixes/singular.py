"""WL205, WL206, WL304, WL305: an operation whose derivative is not finite, or not there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.kernels import assignments, components, type_of
from warplint.fixes.project import Candidate, Problem
from warplint.fixes.source import Source

__all__ = ["FIXES"]

_TINY = "1.0e-12"


def condition(problem: Problem) -> Iterator[Candidate]:
    """WL304: a conditional expression computes only what it selects."""
    for source, call in _calls(problem, "where"):
        if len(call.args) == 3 and not call.keywords:
            test, then, other = (source.segment(a) for a in call.args)
            if any(isinstance(a, ast.IfExp) for a in call.args):
                continue
            text = f"{then} if {test} else {other}"
            parent = source.parents[call]
            plain = isinstance(parent, (ast.Assign, ast.Return)) and "\n" not in text
            changes = [source.replace(call, text if plain else f"({text})")]
            yield problem.project.candidate("compute only what is selected", changes)


def selection(problem: Problem) -> Iterator[Candidate]:
    """WL206: before Warp 1.17 a conditional expression hands no derivative on, and ``where`` does."""
    found = problem.node()
    where = found[0].warp("where") if found else None
    for node in ast.walk(found[0].statement(found[1])) if found and where else ():
        if found and isinstance(node, ast.IfExp):
            test, then, other = (found[0].segment(n) for n in (node.test, node.body, node.orelse))
            changes = [found[0].replace(node, f"{where}({test}, {then}, {other})")]
            yield problem.project.candidate("select with a built-in", changes)


def fraction(problem: Problem) -> Iterator[Candidate]:
    """WL205: ``frac`` has a derivative when it is written as a difference."""
    for source, call in _calls(problem, "frac"):
        floor = source.warp("floor")
        if floor and len(call.args) == 1:
            text = source.segment(call.args[0])
            whole = f"({text})" if isinstance(call.args[0], (ast.BinOp, ast.IfExp)) else text
            made = f"{whole} - {floor}({text})"
            inside = isinstance(source.parents[call], (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute))
            changes = [source.replace(call, f"({made})" if inside else made)]
            yield problem.project.candidate("write it as a difference", changes)


def singular(problem: Problem) -> Iterator[Candidate]:
    """WL305: a built-in that is finite at zero, or a guard."""
    for source, call in _calls(problem, "sqrt", "log", "pow", "cbrt", "length", "acos", "asin"):
        function = source.function_of(call)
        if function is None or not call.args:
            continue
        operand = _looked_up(source, function, call.args[0])
        length = source.warp("length")
        if source.is_warp(call.func, "sqrt") and length:
            for vector in _squared(source, function, operand):
                changes = [source.replace(call, f"{length}({vector})")]
                yield problem.project.candidate(
                    "use the built-in length, whose derivative is finite", changes
                )
        greatest = source.warp("max")
        if greatest and not source.is_warp(call.func, "length", "acos", "asin"):
            text = source.segment(call.args[0])
            changes = [source.replace(call.args[0], f"{greatest}({text}, {_TINY})")]
            yield problem.project.candidate("keep the operand away from zero", changes)
    yield from _divisions(problem)


def _looked_up(source: Source, function: ast.FunctionDef, node: ast.expr) -> ast.expr:
    """What a local was set to, where it is set once."""
    if isinstance(node, ast.Name):
        found = assignments(function, node.id)
        if len(found) == 1:
            return found[0].value
    return node


def _squared(source: Source, function: ast.FunctionDef, node: ast.expr) -> Iterator[str]:
    """Vectors that an expression is the squared length of."""
    if isinstance(node, ast.Call):
        given = [source.segment(a) for a in node.args]
        if source.is_warp(node.func, "dot") and len(given) == 2 and given[0] == given[1]:
            yield given[0]
        if source.is_warp(node.func, "length_sq") and len(given) == 1:
            yield given[0]
        return
    terms = [_square_of(source, term) for term in _terms(node)]
    if len(terms) in (2, 3, 4) and all(terms):
        names = [term for term in terms if term]
        whole = {name.rpartition("[")[0] for name in names}
        if len(whole) == 1 and (vector := whole.pop()):
            first = next(n for n in ast.walk(node) if isinstance(n, ast.Subscript)).value
            kind = type_of(source, function, first)
            if kind and components(kind, vector) == names:
                yield vector
        made = source.warp(f"vec{len(names)}")
        if made:
            yield f"{made}({', '.join(names)})"


def _terms(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _square_of(source: Source, node: ast.expr) -> str | None:
    if isinstance(node, ast.BinOp):
        text = source.segment(node.left)
        if isinstance(node.op, ast.Mult) and text == source.segment(node.right):
            return text
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            return text
    return None


def _divisions(problem: Problem) -> Iterator[Candidate]:
    """``v / length(v)`` as ``normalize(v)``; any other divisor gets a lower bound."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    for division in ast.walk(source.statement(node)):
        if not isinstance(division, ast.BinOp) or not isinstance(division.op, ast.Div):
            continue
        function = source.function_of(division)
        below = _looked_up(source, function, division.right) if function is not None else division.right
        above = source.segment(division.left)
        normalize = source.warp("normalize")
        length = isinstance(below, ast.Call) and source.is_warp(below.func, "length")
        of = [source.segment(a) for a in below.args] if isinstance(below, ast.Call) else []
        if length and normalize and of == [above]:
            changes = [source.replace(division, f"{normalize}({above})")]
            yield problem.project.candidate("use the built-in, which is finite at zero", changes)
        greatest = source.warp("max")
        if greatest and isinstance(below, ast.Call) and source.is_warp(below.func, "length", "sqrt"):
            text = source.segment(division.right)
            changes = [source.replace(division.right, f"{greatest}({text}, {_TINY})")]
            yield problem.project.candidate("keep the divisor away from zero", changes)


def _calls(problem: Problem, *names: str) -> Iterator[tuple[Source, ast.Call]]:
    """The calls of these built-ins at the place of a result: itself, else those of its statement."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    if isinstance(node, ast.Call) and source.is_warp(node.func, *names):
        yield source, node
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and source.is_warp(inner.func, *names):
            yield source, inner


FIXES = {"WL205": fraction, "WL206": selection, "WL304": condition, "WL305": singular}
