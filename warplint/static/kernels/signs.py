"""What can be told about the sign of a value: enough to see that an operand stays off a singularity."""

from __future__ import annotations

from typing import Any

from warplint.static.kernels.domain import Value

__all__ = ["negated", "of_binary", "of_builtin"]

POSITIVE, NONNEGATIVE, NONPOSITIVE = "positive", "nonnegative", "nonpositive"
_UP = (POSITIVE, NONNEGATIVE)


def of_binary(operator: str, left: Value, right: Value, *, same: bool) -> str:
    """The sign of ``left operator right``; ``same`` for what is written as a square."""
    a, b = left.sign, right.sign
    if operator == "+" and a in _UP and b in _UP:
        return POSITIVE if POSITIVE in (a, b) else NONNEGATIVE
    if operator == "*":
        if same:
            return POSITIVE if a == POSITIVE else NONNEGATIVE
        if a in _UP and b in _UP:
            return POSITIVE if a == b == POSITIVE else NONNEGATIVE
        if (a in _UP and b == NONPOSITIVE) or (b in _UP and a == NONPOSITIVE):
            return NONPOSITIVE
    if operator == "/" and a in _UP and b in _UP:
        return POSITIVE if a == b == POSITIVE else NONNEGATIVE
    if operator == "**" and a == POSITIVE:
        return POSITIVE
    return ""


def negated(sign: str) -> str:
    if sign in _UP:
        return NONPOSITIVE
    return NONNEGATIVE if sign == NONPOSITIVE else ""


def of_builtin(name: str, values: list[Value], *, same: bool) -> str:
    """The sign of a builtin's result."""
    signs = [v.sign for v in values]
    if name in ("exp", "cosh"):
        return POSITIVE
    if name in ("abs", "length", "length_sq", "norm_l1", "norm_l2", "norm_huber", "norm_pseudo_huber"):
        return POSITIVE if signs[:1] == [POSITIVE] else NONNEGATIVE
    if name == "smooth_normalize":
        return ""
    if name == "dot" and same:
        return NONNEGATIVE
    if name in ("sqrt", "cbrt", "float", "float32", "float64", "float16") and signs:
        return signs[0]
    if name == "pow" and signs and signs[0] == POSITIVE:
        return POSITIVE
    if name == "max" and len(signs) == 2:
        if POSITIVE in signs:
            return POSITIVE
        return NONNEGATIVE if NONNEGATIVE in signs else ""
    if name == "min" and len(signs) == 2:
        if all(s in _UP for s in signs):
            return POSITIVE if signs == [POSITIVE, POSITIVE] else NONNEGATIVE
        return NONPOSITIVE if NONPOSITIVE in signs else ""
    if name == "clamp" and len(signs) == 3:
        return signs[1] if signs[1] in _UP else ""
    return ""


def literal(number: Any) -> str:
    """The sign of a literal."""
    if number > 0:
        return POSITIVE
    return NONNEGATIVE if number == 0 else NONPOSITIVE
