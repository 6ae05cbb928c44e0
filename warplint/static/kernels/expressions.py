"""Expressions of a kernel body, element accesses included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import libcst as cst

from warplint.static.host.values import UNKNOWN, ArrayType, Class, Unknown
from warplint.static.kernels import components, domain, signs
from warplint.static.kernels.domain import (
    CONSTANT,
    EMPTY,
    ArrayRef,
    HostValue,
    Key,
    LocalStruct,
    Risk,
    StructRef,
    Taint,
    TupleValue,
    Value,
)
from warplint.static.kernels.effects import Effects, Frame, value_of
from warplint.static.kernels.summary import Access, Dimension, FaultKind, Site

__all__ = ["OPERATORS", "Expressions"]


class Expressions(Effects):
    def expression(self, node: Any, frame: Frame) -> Any:
        self.step()
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            return getattr(self, handler)(node, frame)
        return CONSTANT

    def name(self, node: cst.Name, frame: Frame) -> Any:
        if node.value in frame.names:
            return frame.names[node.value]
        return self.outside(node, frame)

    def outside(self, node: Any, frame: Frame) -> Any:
        value = self.host.resolve(node, frame.function)
        if isinstance(value, int) and not isinstance(value, bool):
            return Value(index=domain.number(value), sign=signs.literal(value))
        if isinstance(value, float):
            return Value(sign=signs.literal(value))
        if isinstance(value, (bool, str)):
            return CONSTANT
        return HostValue(value)

    def integer(self, node: cst.Integer, frame: Frame) -> Any:
        value = int(node.value.replace("_", ""), 0)
        return Value(index=domain.number(value), sign=signs.literal(value))

    def decimal(self, node: cst.Float, frame: Frame) -> Any:
        return Value(sign=signs.literal(float(node.value)))

    def attribute(self, node: cst.Attribute, frame: Frame) -> Any:
        owner = self.expression(node.value, frame)
        name = node.attr.value
        if isinstance(owner, StructRef):
            path = f"{owner.path}.{name}"
            fields = owner.cls.all_fields() if isinstance(owner.cls, Class) else {}
            annotation = fields.get(name, UNKNOWN)
            if isinstance(annotation, ArrayType):
                return ArrayRef(path, annotation.ndim, annotation.element, struct=annotation.struct)
            if isinstance(annotation, Class):
                return StructRef(path, annotation)
            if isinstance(annotation, Unknown) and name not in fields:
                return ArrayRef(path, None, "unknown")
            return Value(index=domain.symbol(path))
        if isinstance(owner, ArrayRef):
            if name in ("shape", "ndim", "size", "strides", "ptr", "grad"):
                return Value(index=domain.symbol(f"{owner.path}.{name}"))
            return CONSTANT
        if isinstance(owner, LocalStruct):
            return owner.fields.get(name, owner.fields.get("*", CONSTANT))
        if isinstance(owner, HostValue):
            return self.outside(node, frame)
        if isinstance(owner, Value):
            return components.component(owner, (components.key_of(name),))
        return CONSTANT

    def subscript(self, node: cst.Subscript, frame: Frame) -> Any:
        owner = self.expression(node.value, frame)
        if isinstance(owner, HostValue):
            return self.outside(node, frame)  # ``wp.array[float]`` and the like, tables of constants
        dims, depends = self.dimensions(node.slice, frame)
        if isinstance(owner, ArrayRef):
            full = owner.prefix + dims
            depends = depends | owner.index_depends
            if any(isinstance(e.slice, cst.Slice) for e in node.slice) or (
                owner.ndim is not None and len(full) < owner.ndim
            ):
                return replace(owner, prefix=full, index_depends=depends)
            return self.read(replace(owner, index_depends=depends), full, frame, node)
        if isinstance(owner, TupleValue):
            index = dims[0].base({}) if len(dims) == 1 and not dims[0].moving else None
            if index is not None and -len(owner.items) <= index < len(owner.items):
                return owner.items[index]
            return CONSTANT
        if isinstance(owner, Value):
            if owner.index is not None and not owner.active:
                # ``x.shape[0]``: a launch constant of its own
                text = "".join(str(d.terms) for d in dims)
                return replace(owner, index=domain.symbol(f"{owner.index}[{text}]"))
            key = self.component_key(node.slice, frame)
            return domain.under(components.component(owner, key), depends)
        return CONSTANT

    def component_key(self, elements: Sequence[cst.SubscriptElement], frame: Frame) -> Key:
        """Which component an index names; a slice may be any of them."""
        found: list[Any] = []
        for element in elements:
            if isinstance(element.slice, cst.Index):
                entry = self.expression(element.slice.value, frame)
                several = isinstance(entry, TupleValue) and not entry.thread
                found.extend(components.key_of(value_of(i)) for i in (entry.items if several else (entry,)))
            else:
                found.append(components.key_of(CONSTANT))
        return tuple(found)

    def dimensions(
        self, elements: Sequence[cst.SubscriptElement], frame: Frame
    ) -> tuple[tuple[Dimension, ...], frozenset[Access]]:
        dims: list[Dimension] = []
        depends: frozenset[Access] = EMPTY
        for element in elements:
            if isinstance(element.slice, cst.Index):
                entry = self.expression(element.slice.value, frame)
                several = isinstance(entry, TupleValue) and not entry.thread
                for item in entry.items if several else (entry,):
                    value = value_of(item)
                    depends |= value.depends
                    dims.append(value.dimension())
            else:
                dims.append(Dimension(None))
        return tuple(dims), depends

    def binary_operation(self, node: cst.BinaryOperation, frame: Frame) -> Any:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        operator = OPERATORS.get(type(node.operator).__name__, "?")
        same = operator == "*" and self.is_square(node, frame)
        return self.binary(operator, left, right, frame, node, same=same)

    def is_square(self, node: cst.BinaryOperation, frame: Frame) -> bool:
        """Whether every factor of unknown sign stands in a product an even number of times."""
        code = frame.function.module.source.code
        odd: dict[str, Any] = {}
        for factor in _factors(node):
            text = code(factor)
            if odd.pop(text, None) is None:
                odd[text] = factor
        return all(self.value(f, frame).sign in (signs.POSITIVE, signs.NONNEGATIVE) for f in odd.values())

    def alike(self, one: Any, other: Any, frame: Frame) -> bool:
        """Whether two operands are written alike, so that their product is a square."""
        code = frame.function.module.source.code
        return bool(code(one) == code(other))

    def binary(
        self, operator: str, left: Value, right: Value, frame: Frame, node: Any, *, same: bool = False
    ) -> Value:
        if operator in "+-":
            result = domain.linear(left, right)
        elif operator in "*@":
            result = domain.product(left, right)
        elif operator == "/":
            result = domain.quotient(left, right)
        elif operator == "%":
            moved = domain.inactive(left, right)
            result = replace(moved, active=left.active, needs=left.needs)
        elif operator == "**":
            result = domain.nonlinear(left, right)
        else:
            result = domain.inactive(left, right)
        if operator in "+-*" and left.index is not None and right.index is not None:
            result = replace(result, index=domain.combine(operator, left, right))
        risk = None
        if operator == "/":
            risk = self.risk(
                "division", right, left.active_paths | right.active_paths, frame, node, alone=False
            )
        elif operator == "**":
            risk = self.power_risk(left, right, getattr(node, "right", None), frame, node)
        if risk is not None:
            result = replace(result, risks=result.risks | {risk})
        return replace(result, sign=signs.of_binary(operator, left, right, same=same))

    # -- operations that are not finite everywhere ------------------------------------------------

    def risk(
        self, operation: str, operand: Value, given: frozenset[str], frame: Frame, node: Any, *, alone: bool
    ) -> Risk | None:
        """The risk of an operation, unless its operand is bounded away from the singular point.

        A real branch on what the operand depends on is taken for a guard.
        """
        safe = signs.NONPOSITIVE if operation == "exp" else signs.POSITIVE
        if operand.sign == safe or not given:
            return None
        if domain.share(operand.depends, self.condition | self.guards):
            return None
        if alone and not operand.active:
            return None
        site = Site(frame.function.module.source, node)
        return Risk(operation, site, operand.depends, given, alone, self.steps)

    def power_risk(self, base: Value, exponent: Value, written: Any, frame: Frame, node: Any) -> Risk | None:
        """``x ** p`` has no finite derivative at zero if p is below one, or varies."""
        if exponent.active:
            return self.risk("power", base, exponent.active_paths, frame, node, alone=False)
        number = written
        if isinstance(number, cst.UnaryOperation) and isinstance(number.operator, cst.Minus):
            return self.risk("power", base, base.active_paths, frame, node, alone=False)
        if isinstance(number, cst.Float) and float(number.value) < 1.0:
            return self.risk("power", base, base.active_paths, frame, node, alone=True)
        return None

    def unary(self, node: cst.UnaryOperation, frame: Frame) -> Any:
        operand = self.value(node.expression, frame)
        if isinstance(node.operator, cst.Minus):
            negated = domain.combine("-", Value(index=()), operand)
            return replace(operand, index=negated, kept=EMPTY, sign=signs.negated(operand.sign), parts=None)
        if isinstance(node.operator, cst.Plus):
            return operand
        return domain.inactive(operand)

    def comparison(self, node: cst.Comparison, frame: Frame) -> Any:
        sides = [node.left, *(c.comparator for c in node.comparisons)]
        return domain.inactive(*(self.value(s, frame) for s in sides))

    def boolean(self, node: cst.BooleanOperation, frame: Frame) -> Any:
        return domain.inactive(self.value(node.left, frame), self.value(node.right, frame))

    def ternary(self, node: cst.IfExp, frame: Frame) -> Any:
        test = self.value(node.test, frame)
        saved = self.guards
        self.guards = saved | test.depends  # only the chosen side is evaluated
        left, right = self.picked(node.body, frame), self.picked(node.orelse, frame)
        self.guards = saved
        if isinstance(left, Value) and isinstance(right, Value):
            return self.chosen(left, right, test, node.test, (node.body, node.orelse), frame)
        return left

    def picked(self, node: Any, frame: Frame) -> Any:
        """One side of a ternary. No derivative passed to an array element or a field before Warp 1.17."""
        value = self.expression(node, frame)
        if not isinstance(value, Value) or not value.active or not self.is_place(node, frame):
            return value
        site = Site(frame.function.module.source, node)
        text = frame.function.module.source.code(node)
        taint = Taint(FaultKind.PICKED, text, site, site, value.active_paths, self.steps, "<1.17")
        return replace(value, taints=value.taints | {taint})

    def is_place(self, node: Any, frame: Frame) -> bool:
        """Whether an expression names an element of an array or a field of a struct."""
        if isinstance(node, cst.Subscript):
            return isinstance(self.reference(node.value, frame), ArrayRef)
        if isinstance(node, cst.Attribute):
            owner = self.expression(node.value, frame)
            return isinstance(owner, LocalStruct) or getattr(owner, "struct", None) is not None
        return False

    def chosen(
        self, left: Value, right: Value, test: Value, condition: Any, nodes: tuple[Any, Any], frame: Frame
    ) -> Value:
        """Either of two values; ``c if a[i] >= c else a[i]`` is a limit like ``min(a[i], c)``."""
        result = domain.join(left, right, test.depends)
        code = frame.function.module.source.code
        for reads, bound in self.self_preserving(condition, frame):
            if code(nodes[0]) == bound and right.kept:
                result = replace(result, kept=right.kept | reads)
        return result

    def sequence(self, node: Any, frame: Frame) -> Any:
        return TupleValue(tuple(self.expression(e.value, frame) for e in node.elements))

    def self_preserving(self, test: Any, frame: Frame) -> list[tuple[frozenset[Access], str]]:
        """Reads a test compares, and with what: ``a[i] >= c`` still holds once ``a[i]`` is ``c``."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return []
        operator, right = test.comparisons[0].operator, test.comparisons[0].comparator
        if not isinstance(operator, (cst.GreaterThanEqual, cst.LessThanEqual, cst.Equal)):
            return []
        code = frame.function.module.source.code
        sides = ((test.left, right), (right, test.left))
        found = [(self.value(one, frame).kept, code(other)) for one, other in sides]
        return [(reads, bound) for reads, bound in found if reads]

    # -- places --------------------------------------------------------------------------------

    def place(self, target: Any, frame: Frame) -> tuple[ArrayRef, tuple[Dimension, ...], bool] | None:
        """The array element a target names, and whether only a component of it is meant."""
        if isinstance(target, cst.Subscript):
            owner = self.reference(target.value, frame)
            if isinstance(owner, ArrayRef):
                dims, depends = self.dimensions(target.slice, frame)
                full = owner.prefix + dims
                ref = replace(owner, index_depends=owner.index_depends | depends)
                extra = owner.ndim is not None and len(full) > owner.ndim
                return ref, full[: owner.ndim] if extra else full, extra
        if isinstance(target, (cst.Subscript, cst.Attribute)):
            inner = self.place(target.value, frame)
            if inner is not None:
                return inner[0], inner[1], True
        return None

    def reference(self, node: Any, frame: Frame) -> Any:
        """Like ``expression`` for the array part of a target, without counting a read of it."""
        if isinstance(node, cst.Subscript):
            owner = self.reference(node.value, frame)
            if isinstance(owner, ArrayRef):
                dims, depends = self.dimensions(node.slice, frame)
                if owner.ndim is None or len(owner.prefix) + len(dims) >= owner.ndim:
                    return None
                return replace(owner, prefix=owner.prefix + dims, index_depends=owner.index_depends | depends)
            return None
        if isinstance(node, (cst.Name, cst.Attribute)):
            return self.expression(node, frame)
        return None


def _factors(node: Any) -> list[Any]:
    """The factors of a product written in a row."""
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
        return [*_factors(node.left), *_factors(node.right)]
    return [node]


OPERATORS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "MatrixMultiply": "@",
    "Divide": "/",
    "FloorDivide": "//",
    "Modulo": "%",
    "Power": "**",
}

_EXPRESSIONS: dict[type, str] = {
    cst.Name: "name",
    cst.Integer: "integer",
    cst.Float: "decimal",
    cst.Attribute: "attribute",
    cst.Subscript: "subscript",
    cst.BinaryOperation: "binary_operation",
    cst.UnaryOperation: "unary",
    cst.Comparison: "comparison",
    cst.BooleanOperation: "boolean",
    cst.IfExp: "ternary",
    cst.Tuple: "sequence",
    cst.List: "sequence",
    cst.Call: "call",
}
