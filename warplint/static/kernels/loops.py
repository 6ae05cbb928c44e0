"""Which loops of a kernel Warp unrolls, and what the others carry from turn to turn.

The adjoint of a loop that is not unrolled runs its turns backwards and computes each turn's values
again, but not what earlier turns have made of the variables from outside. Those begin with the
value from before the loop and go on from there, while the turns go back: after the loop they are
as before it, and inside it they belong to another turn. Only where every turn is like every other
does that not matter (:func:`advanced_first`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

__all__ = [
    "MAX_UNROLL",
    "advanced_first",
    "assigned_names",
    "breaks",
    "contains_static",
    "exits",
    "literal_range",
]

MAX_UNROLL = 16
"""Warp's default for the module option ``max_unroll``."""


def literal_range(node: Any) -> list[Any] | None:
    """The arguments of ``range(…)`` if each is simple enough for Warp to evaluate it, else None."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "range"):
        return None
    arguments = [a.value for a in node.args]
    if any(isinstance(a, cst.BinaryOperation) for a in arguments):
        return None  # not even of constants
    return arguments if 1 <= len(arguments) <= 3 else None


def assigned_names(body: Any) -> frozenset[str]:
    """Local names that a block assigns, as a whole or in part."""
    found: set[str] = set()
    for node in _walk(body):
        targets: list[Any] = []
        if isinstance(node, cst.Assign):
            targets = [t.target for t in node.targets]
        elif isinstance(node, (cst.AugAssign, cst.AnnAssign)):
            targets = [node.target]
        while targets:
            target = targets.pop()
            if isinstance(target, (cst.Tuple, cst.List)):
                targets.extend(e.value for e in target.elements)
            while isinstance(target, (cst.Subscript, cst.Attribute)):
                target = target.value
            if isinstance(target, cst.Name):
                found.add(target.value)
    return frozenset(found)


def advanced_first(loop: cst.For) -> dict[str, Any]:
    """Variables that each turn moves on before it uses them, by name, with the expression.

    Turns that run backwards meet their values in the order of the loop, one turn each; where
    nothing else tells the turns apart (no use of the loop's own variable, no way out of the loop,
    nothing carried on but sums), the sum over all turns is the same. Whether an expression carries
    a derivative is for the caller to see: then the order does matter.
    """
    if not isinstance(loop.target, cst.Name) or exits(loop.body) is not None:
        return {}
    if _uses(loop.body, loop.target.value):
        return {}
    steps: dict[str, Any] = {}
    rest: list[Any] = []
    for statement in loop.body.body:
        step = _step(statement)
        if step is None or rest or step[0] in steps:
            rest.append(statement)
        else:
            steps[step[0]] = step[1]
    carried = frozenset[str]().union(*(assigned_names(statement) for statement in rest))
    if not carried.isdisjoint(steps):
        return {}
    sums = {n for n in carried if all(_adds_only(statement, n) for statement in rest)}
    inner = {n for n in carried - sums if _set_before_use(rest, n)}
    read = {n for expression in steps.values() for n in carried if _uses(expression, n)}
    return steps if carried == sums | inner and not read else {}


def _step(statement: Any) -> tuple[str, Any] | None:
    """``v = e`` or ``v += e`` of a plain name, where nothing is read from memory."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    (node,) = statement.body
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        target = node.targets[0].target
    elif isinstance(node, cst.AugAssign):
        target = node.target
    else:
        return None
    if not isinstance(target, cst.Name) or any(isinstance(n, cst.Subscript) for n in _walk(node.value)):
        return None
    recurs = isinstance(node, cst.AugAssign) or _uses(node.value, target.value)
    return (target.value, node.value) if recurs else None


def _adds_only(node: Any, name: str) -> bool:
    """Whether all that a statement does with a variable is to add to it."""
    for inner in _walk(node):
        if isinstance(inner, cst.AugAssign) and _is_name(inner.target, name):
            if not isinstance(inner.operator, (cst.AddAssign, cst.SubtractAssign)) or _uses(
                inner.value, name
            ):
                return False
        elif isinstance(inner, cst.Assign) and any(_is_name(t.target, name) for t in inner.targets):
            value = inner.value
            if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Add):
                return False
            sides = [side for side in (value.left, value.right) if not _is_name(side, name)]
            if len(sides) != 1 or _uses(sides[0], name):
                return False
    additions = sum(_mentions(inner, name) for inner in _walk(node) if _adds_to(inner, name))
    return sum(_is_name(n, name) for n in _walk(node)) == additions


def _adds_to(node: Any, name: str) -> bool:
    if isinstance(node, cst.AugAssign):
        return _is_name(node.target, name)
    return isinstance(node, cst.Assign) and any(_is_name(t.target, name) for t in node.targets)


def _mentions(node: Any, name: str) -> int:
    return sum(_is_name(n, name) for n in _walk(node))


def _set_before_use(statements: list[Any], name: str) -> bool:
    """Whether a turn gives a variable its value anew before it looks at it."""
    for statement in statements:
        if _mentions(statement, name):
            if not isinstance(statement, cst.SimpleStatementLine):
                return False
            node = statement.body[0]
            return isinstance(node, cst.Assign) and not _uses(node.value, name) and _adds_to(node, name)
    return True


def _is_name(node: Any, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _uses(node: Any, name: str) -> bool:
    return any(_is_name(inner, name) for inner in _walk(node))


def exits(body: Any) -> Any:
    """The first ``break`` (of this very loop) or ``return`` in a loop's body, or None."""
    for node in _walk(body, into_loops=False):
        if isinstance(node, (cst.Break, cst.Return)):
            return node
    return None


def breaks(body: Any) -> bool:
    """Whether a loop's body holds a ``break`` of this very loop."""
    return any(isinstance(node, cst.Break) for node in _walk(body, into_loops=False))


def contains_static(body: Any) -> bool:
    """Whether a body holds ``wp.static(…)``, which forces Warp to unroll."""
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == "static"
        for node in _walk(body)
    )


def _walk(node: Any, *, into_loops: bool = True) -> Iterator[Any]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        for child in reversed(current.children):
            if not into_loops and isinstance(child, (cst.For, cst.While)):
                continue
            stack.append(child)
