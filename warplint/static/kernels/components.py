"""Components of local vectors, matrices and quaternions: which of them carry a derivative.

Assigning a component does not clear its adjoint (unless ``enable_vector_component_overwrites`` is
set), so what it held before receives the adjoint of what it holds now. That is harmless exactly
if what it held carries no derivative, and for each component by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from warplint.static.kernels.domain import CONSTANT, EMPTY, Key, Parts, Value, linear

__all__ = ["built", "component", "key_of", "overwritten", "with_component"]

_NAMES = {**{n: k for k, n in enumerate("xyzw")}, **{n: k for k, n in enumerate("rgba")}}


def key_of(entry: Any) -> Any:
    """One index of a component as part of a key: a number where it is known, else its polynomial."""
    if isinstance(entry, str):
        return _NAMES.get(entry, entry)
    terms = entry.index if isinstance(entry, Value) else None
    if terms is not None and all(not m for m, _ in terms):
        return terms[0][1] if terms else 0
    return ("?", terms)


def built(sizes: tuple[int, ...], values: Sequence[Value]) -> Parts | None:
    """The parts of a constructor's result: one value a component, one for all, or none (zero)."""
    count = 1
    for size in sizes:
        count *= size
    if not values:
        return Parts((), CONSTANT)
    if len(values) == 1:
        return Parts((), linear(values[0]))
    if len(values) != count:
        return None
    keys = [(k,) for k in range(count)]
    if len(sizes) == 2:
        keys = [divmod(k, sizes[1]) for k in range(count)]  # type: ignore[misc]
    return Parts(tuple(zip(keys, values, strict=False)), CONSTANT)


def component(value: Value, key: Key) -> Value:
    """What a component holds."""
    if value.parts is None:
        return replace(value, index=None, factors=EMPTY, kept=EMPTY, sign="", parts=None, struct=None)
    known = value.parts.known
    somewhere = [v for k, v in known if any(_unknown(part) for part in k)]
    covering = [v for k, v in known if k == key[: len(k)]]
    if covering:
        return linear(covering[-1], *somewhere) if somewhere else covering[-1]
    inside = [v for k, v in known if _may_meet(key, k)]
    return linear(*inside, value.parts.rest) if inside else value.parts.rest


def overwritten(value: Value, key: Key) -> Value:
    """What a component holds that is about to be assigned.

    A loop variable takes another value on every turn, so what an earlier turn assigned by the same
    index is another component.
    """
    if value.parts is not None and any(_unknown(part) and _moves(part) for part in key):
        known = tuple((k, v) for k, v in value.parts.known if k != key)
        value = replace(value, parts=Parts(known, value.parts.rest))
    return component(value, key)


def with_component(value: Value, key: Key, new: Value) -> Value:
    """The vector after an assignment of one component."""
    before = value.parts
    if before is None:
        if value.active:
            return linear(value, new)
        before = Parts((), value)  # constants, however they were made
    known = tuple((k, v) for k, v in before.known if k[: len(key)] != key)
    parts = Parts((*known, (key, new)), before.rest)
    merged = linear(*(v for _, v in parts.known), parts.rest, CONSTANT)
    return replace(merged, parts=parts)


def _may_meet(wanted: Key, known: Key) -> bool:
    """Whether two components may be one, or one of them a part of the other."""
    return all(
        one == other or _unknown(one) or _unknown(other) for one, other in zip(wanted, known, strict=False)
    )


def _unknown(part: Any) -> bool:
    return isinstance(part, tuple)


def _moves(part: Any) -> bool:
    terms = part[1]
    return terms is None or any(s.startswith("loop:") for m, _ in terms for s in m)
