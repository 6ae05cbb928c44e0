"""Launches that select among equals: the smallest of two numbers that are the same.

Every choice is a valid derivative there, and what Warp's adjoint makes of it (one of the equals, or all
of them) need not be what a difference says. Moved apart by a little, the same launch passes its test.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from . import arrays
from .hooks import Stream
from .launch_tests import WRONG, trial_errors
from .repairs import called_functions
from .rewrites import source_tree

SELECTIONS = frozenset({"min", "max", "atomic_min", "atomic_max", "argmin", "argmax"})
QUERIES = ("mesh_query_point", "closest_point")
APART = 0.03
"""How far the numbers are moved apart, relative to their size: farther than the test moves them."""
STILL = 1.0e-3
"""What the test moves them by, relative to the same."""


def selects(kernel: Any) -> bool:
    """Whether a kernel takes the smallest, the largest or the closest of something."""
    bodies = [kernel.func, *(f.func for f in called_functions(kernel.func))]
    trees = [tree for tree in map(source_tree, bodies) if tree is not None]
    return any(
        name in SELECTIONS or name.startswith(QUERIES) for tree in trees for name in _called_names(tree)
    ) or any(_keeps_better(node) for tree in trees for node in ast.walk(tree))


def at_tie(stream: Stream, call: dict[str, Any], roots: list[Any]) -> bool:
    """Whether a launch that fails its test passes it with its numbers moved apart."""
    if not selects(call["kernel"]):
        return False
    floats = [r for r in roots if arrays.is_float(r) and r.is_contiguous and r.size]
    saved = [(arrays.memory(r), arrays.memory(r).copy()) for r in floats]
    random = np.random.Generator(np.random.PCG64(3))
    try:
        for memory, values in saved:
            scale = float(np.sqrt(np.mean(np.square(values.astype(np.float64)))))
            memory[...] = values + APART * scale * random.standard_normal(values.shape)
        errors = [e for e in trial_errors(stream, call, roots, step=STILL, still=True) if e is not None]
    finally:
        for memory, values in saved:
            memory[...] = values
    return len(errors) > 1 and max(errors) <= WRONG


def _keeps_better(node: ast.AST) -> bool:
    """``if d < best: best = d``, in any spelling."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    if not isinstance(node.test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return False
    sides = {ast.unparse(side) for side in (node.test.left, *node.test.comparators)}
    stored = [s for s in node.body if isinstance(s, ast.Assign)]
    return any(ast.unparse(t) in sides and ast.unparse(s.value) in sides for s in stored for t in s.targets)


def _called_names(tree: Any) -> set[str]:
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}
