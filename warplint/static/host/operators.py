"""Arithmetic, comparison and logic, concrete where both sides are known."""

from __future__ import annotations

import operator
from typing import Any

import libcst as cst

from warplint.static.host.attributes import Attributes
from warplint.static.host.core import has_unknown, is_known, merge, truth
from warplint.static.host.values import (
    MAX_ITEMS,
    UNKNOWN,
    UNKNOWN_LENGTH,
    Dict,
    External,
    List,
    Placeholder,
    Unknown,
    base_of,
    carried,
)

__all__ = ["Operators"]

_BINARY: dict[str, Any] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulo": operator.mod,
    "Power": operator.pow,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LeftShift": operator.lshift,
    "RightShift": operator.rshift,
}
_COMPARE: dict[str, Any] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
}
_NUMERIC = (int, float)


class Operators(Attributes):
    """Operators over known values; what the host computed from an array stays traceable to it."""

    def _binary(self, node: cst.BinaryOperation) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.operate(type(node.operator).__name__, left, right, node)

    def operate(self, name: str, left: Any, right: Any, node: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            if name == "Add" and isinstance(left, str) and isinstance(right, str):
                return (left + right)[:1000]
            return UNKNOWN
        if isinstance(left, _NUMERIC) and isinstance(right, _NUMERIC):
            return _arithmetic(name, left, right)
        if name == "Add" and isinstance(left, tuple) and isinstance(right, tuple):
            return left + right
        if name == "Add" and isinstance(left, List) and isinstance(right, List):
            return List([*left.items, *right.items][:MAX_ITEMS], left.exact and right.exact)
        if name == "Multiply":
            sequence, count = (left, right) if isinstance(left, (List, tuple)) else (right, left)
            if isinstance(sequence, (List, tuple)):
                times = count if isinstance(count, int) else UNKNOWN_LENGTH
                items = list(sequence.items if isinstance(sequence, List) else sequence)
                items = (items * max(0, min(times, MAX_ITEMS)))[:MAX_ITEMS]
                return List(items) if isinstance(sequence, List) else tuple(items)
        made_of = carried(left, right)
        if made_of is not UNKNOWN:
            return made_of
        if base_of(left) is not None or base_of(right) is not None:
            return self.array_operator(name, left, right, node)
        return UNKNOWN

    def array_operator(self, name: str, left: Any, right: Any, node: Any) -> Any:
        raise NotImplementedError

    def _unary(self, node: cst.UnaryOperation) -> Any:
        value = self.evaluate(node.expression)
        if isinstance(node.operator, cst.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(value, _NUMERIC):
            if isinstance(node.operator, cst.Minus):
                return -value
            if isinstance(node.operator, cst.Plus):
                return value
        return carried(value)

    def _boolean(self, node: cst.BooleanOperation) -> Any:
        left = self.evaluate(node.left)
        known = truth(left)
        wants = isinstance(node.operator, cst.Or)
        if known is None:
            right = self.evaluate(node.right)
            right_truth = truth(right)
            if right_truth is wants and isinstance(right, bool):
                return right  # ``unknown or True``
            return merge(left, right)
        return left if known is wants else self.evaluate(node.right)

    def _comparison(self, node: cst.Comparison) -> Any:
        left = self.evaluate(node.left)
        result: Any = True
        for target in node.comparisons:
            right = self.evaluate(target.comparator)
            outcome = self.compare(type(target.operator).__name__, left, right)
            if outcome is False:
                return False
            if outcome is not True:
                result = UNKNOWN
            left = right
        return result

    def compare(self, name: str, left: Any, right: Any) -> Any:
        if name in ("Is", "IsNot"):
            if isinstance(left, (Unknown, Placeholder)) or isinstance(right, (Unknown, Placeholder)):
                return UNKNOWN
            same = left is right or (is_known(left) and is_known(right) and left == right)
            return same if name == "Is" else not same
        if name in ("In", "NotIn"):
            inside = self._contains(right, left)
            if isinstance(inside, bool):
                return inside if name == "In" else not inside
            return UNKNOWN
        plain = (is_known(left) or isinstance(left, tuple)) and (is_known(right) or isinstance(right, tuple))
        if plain and name in _COMPARE:
            if has_unknown(left) or has_unknown(right):
                return UNKNOWN
            try:
                return bool(_COMPARE[name](left, right))
            except TypeError:
                return UNKNOWN
        if name in ("Equal", "NotEqual") and isinstance(left, External) and isinstance(right, External):
            return (left.name == right.name) is (name == "Equal")
        if name in ("Equal", "NotEqual") and (left is None or right is None):
            other = right if left is None else left
            if not isinstance(other, (Unknown, Placeholder)):
                return name == "NotEqual"
        return UNKNOWN

    def _contains(self, container: Any, item: Any) -> Any:
        if isinstance(container, str) and isinstance(item, str):
            return item in container
        if isinstance(container, Dict) and container.exact and is_known(item):
            return item in container.items
        items = container.items if isinstance(container, List) and container.exact else container
        if isinstance(items, (list, tuple)) and is_known(item) and all(is_known(i) for i in items):
            return item in items
        return UNKNOWN

    def _ternary(self, node: cst.IfExp) -> Any:
        known = truth(self.evaluate(node.test))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse)
        return merge(self.evaluate(node.body), self.evaluate(node.orelse))


def _arithmetic(name: str, left: Any, right: Any) -> Any:
    """Concrete arithmetic, kept away from numbers that would take time or memory to make."""
    function = _BINARY.get(name)
    if function is None or any(isinstance(v, int) and v.bit_length() > 256 for v in (left, right)):
        return UNKNOWN
    if name in ("Power", "LeftShift") and abs(right) > 64:
        return UNKNOWN
    try:
        return function(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN
