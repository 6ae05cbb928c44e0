"""Custom adjoints (``@wp.func_grad``) as written: what they contribute to which argument."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

__all__ = ["CustomAdjoint", "read_adjoint", "uses_of"]


@dataclass
class CustomAdjoint:
    """Statements of a custom adjoint, by the argument they contribute to."""

    assigned: dict[str, Any] = field(default_factory=dict)
    """``wp.adjoint[x] = …``: overwrites what other uses of x have contributed."""
    ignoring: dict[str, Any] = field(default_factory=dict)
    """Contributions that do not depend on the incoming adjoint."""
    touched: set[str] = field(default_factory=set)


def read_adjoint(function: cst.FunctionDef, arguments: int) -> CustomAdjoint:
    """Reads a custom adjoint; the parameters after the first ``arguments`` are incoming adjoints."""
    names = [p.name.value for p in function.params.params]
    incoming = set(names[arguments:])
    found = CustomAdjoint()
    statements = list(_statements(function.body))
    for _ in range(2):  # twice: a loop may carry the incoming adjoint backwards
        for node in statements:
            if isinstance(node, cst.Assign):
                for target in node.targets:
                    _learn(target.target, node.value, incoming)
            elif isinstance(node, (cst.AugAssign, cst.AnnAssign)) and node.value is not None:
                _learn(node.target, node.value, incoming)
    for node in statements:
        if isinstance(node, cst.Assign):
            for target in node.targets:
                name = _adjoint_of(target.target)
                if name is not None:
                    found.touched.add(name)
                    if not _names(node.value) & {name} or not _reads_adjoint(node.value, name):
                        found.assigned.setdefault(name, node)
                    if not _names(node.value) & incoming and not _reads_adjoint(node.value, name):
                        found.ignoring.setdefault(name, node)
        elif isinstance(node, cst.AugAssign):
            name = _adjoint_of(node.target)
            if name is not None:
                found.touched.add(name)
                if not _names(node.value) & incoming:
                    found.ignoring.setdefault(name, node)
        elif isinstance(node, cst.Expr):
            # ``wp.atomic_add(wp.adjoint[x], i, …)`` and helpers that are handed the adjoint
            for inner in _walk(node):
                name = _adjoint_of(inner)
                if name is not None:
                    found.touched.add(name)
        elif isinstance(node, cst.Return):
            continue
    return found


def uses_of(function: cst.FunctionDef, name: str) -> int:
    """How often a function's body reads a local name."""
    count = 0
    for node in _walk(function.body):
        if isinstance(node, cst.Name) and node.value == name:
            count += 1
        elif isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Name):
            count -= node.target.value == name
    return count


def _learn(target: Any, value: Any, incoming: set[str]) -> None:
    if isinstance(target, cst.Name) and _names(value) & incoming:
        incoming.add(target.value)


def _adjoint_of(node: Any) -> str | None:
    """``x`` for ``wp.adjoint[x]``, ``wp.adjoint[x][i]`` and components of them."""
    while isinstance(node, (cst.Subscript, cst.Attribute)):
        owner = node.value
        if (
            isinstance(node, cst.Subscript)
            and isinstance(owner, cst.Attribute)
            and owner.attr.value == "adjoint"
            and len(node.slice) == 1
            and isinstance(node.slice[0].slice, cst.Index)
            and isinstance(node.slice[0].slice.value, cst.Name)
        ):
            return node.slice[0].slice.value.value
        node = owner
    return None


def _reads_adjoint(node: Any, name: str) -> bool:
    return any(_adjoint_of(inner) == name for inner in _walk(node))


def _statements(body: Any) -> Iterator[Any]:
    kinds = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Expr, cst.Return)
    return (node for node in _walk(body) if isinstance(node, kinds))


def _names(node: Any) -> set[str]:
    return {n.value for n in _walk(node) if isinstance(n, cst.Name)}


def _walk(node: Any) -> Iterator[Any]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))
