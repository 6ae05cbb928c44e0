"""What a kernel's source says about its arguments, where the run alone cannot tell."""

from __future__ import annotations

import ast
from typing import Any

_ONLY_WRITES = frozenset({"tile_store"})


def may_read(kernel: Any, label: str) -> bool:
    """Whether a kernel may use what an argument (``state.q`` for a field) held before the launch.

    False only where every mention of it is the target of a plain store.
    """
    try:
        known: dict[str, bool] = kernel._warplint_reads
    except AttributeError:
        known = kernel._warplint_reads = {}
    if label not in known:
        tree = getattr(kernel.adj, "tree", None)
        known[label] = tree is None or _mentions(tree, label, stores=False)
    return known[label]


def may_write(kernel: Any, label: str) -> bool:
    """Whether a kernel may write to an argument: stores, compound ones, and calls that are handed it."""
    try:
        known: dict[str, bool] = kernel._warplint_writes
    except AttributeError:
        known = kernel._warplint_writes = {}
    if label not in known:
        tree = getattr(kernel.adj, "tree", None)
        known[label] = tree is None or _written(tree, label)
    return known[label]


def _written(tree: ast.AST, label: str) -> bool:
    """Whether an element of ``label`` is stored to, or a call is given the array as a whole."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base: ast.AST = node
            while isinstance(base, ast.Subscript) or (
                isinstance(base, ast.Attribute) and _spelled(base) != label
            ):
                base = base.value
            if _spelled(base) == label:
                return True
        elif isinstance(node, ast.Call):
            for given in (*node.args, *(k.value for k in node.keywords)):
                spelled = _spelled(given)
                if spelled is not None and (spelled == label or label.startswith(spelled + ".")):
                    return True
        elif isinstance(node, ast.Assign) and _spelled(node.value) == label:
            return True  # goes by another name from here on
    return False


def _mentions(tree: ast.AST, label: str, *, stores: bool) -> bool:
    """Whether ``label`` occurs other than as the base of a stored element (or of its shape)."""
    for node in ast.iter_child_nodes(tree):
        stored = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and not stores
        if stored and isinstance(node, ast.Subscript) and _spelled(node.value) == label:
            if _mentions(node.slice, label, stores=False):
                return True
            continue
        if isinstance(node, ast.AugAssign) and _mentions(node.target, label, stores=True):
            return True
        if isinstance(node, ast.Call) and _called(node) in _ONLY_WRITES and node.args:
            rest = [*node.args[1:], *node.keywords]
            if _spelled(node.args[0]) == label:
                if any(_spelled(n) == label or _mentions(n, label, stores=False) for n in rest):
                    return True
                continue
        spelled = _spelled(node)
        if spelled is not None:  # the argument, or a struct that holds it; ``x.shape`` is neither
            if spelled == label or label.startswith(spelled + "."):
                return True
            continue
        if isinstance(node, ast.arguments):
            continue
        if _mentions(node, label, stores=stores):
            return True
    return False


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _spelled(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _spelled(node.value)
        return f"{base}.{node.attr}" if base is not None else None
    return None
