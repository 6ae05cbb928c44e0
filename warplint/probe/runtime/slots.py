"""Which element of which argument the adjoint of a launch gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MOST = 24
"""Elements of an argument that are looked at."""
WRONG = 0.05


def wrong_slot(
    names: dict[int, str],
    graded: list[Any],
    incoming: list[Any],
    left: list[Any],
    derivative: Callable[[Any, tuple[int, ...]], float],
) -> dict[str, Any] | None:
    """The element that is off most: argument, index, adjoint and derivative.

    ``names`` are those of the arguments, by identity of their arrays. ``derivative`` is that of what
    follows, by differences of the launch alone. What is not finite comes first, and the first of it.
    """
    worst: dict[str, Any] | None = None
    size = 0.0
    for root, old, new in zip(graded, incoming, left):
        if new.dtype.kind != "f":
            continue  # elements of structs
        name = names.get(id(root), "")
        bad = np.argwhere(~np.isfinite(new) & np.isfinite(old))
        if len(bad):
            return _row(name, tuple(int(i) for i in bad[0]), float(new[tuple(bad[0])]), None)
        if np.all(np.isfinite(new)):
            for place in _places(new - old):
                found, right = float(new[place]), derivative(root, place)
                gap = abs(found - right)
                if np.isfinite(gap) and gap > WRONG * max(abs(found), abs(right)) and gap > size:
                    size, worst = gap, _row(name, place, found, right)
    return worst


def _row(name: str, place: tuple[int, ...], adjoint: float, derivative: float | None) -> dict[str, Any]:
    return {"argument": name, "element": list(place), "adjoint": adjoint, "derivative": derivative}


def _places(change: Any) -> list[tuple[int, ...]]:
    """Elements worth a look: those that received most, and some from everywhere."""
    flat = np.abs(change).reshape(-1)
    largest = np.argsort(-flat, kind="stable")[: MOST // 2]
    spread = np.linspace(0, flat.size - 1, num=min(MOST // 2, flat.size)).astype(int)
    numbers = sorted({int(n) for n in (*largest, *spread)})
    return [tuple(int(i) for i in np.unravel_index(n, change.shape)) for n in numbers]
