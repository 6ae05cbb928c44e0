"""Which loops of a kernel Warp unrolls, and what the others carry from turn to turn.

The adjoint of a loop that is not unrolled runs its turns backwards and computes each turn's values
again, but not what earlier turns have made of the variables from outside: those have the value
from before the loop, inside it and after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

__all__ = ["MAX_UNROLL", "assigned_names", "contains_static", "exits", "literal_range"]

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
