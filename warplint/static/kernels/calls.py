"""Calls in a kernel body: builtins, structs, other functions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import libcst as cst

from warplint.static.host.values import UNKNOWN, Class, External, Function
from warplint.static.kernels import builtins as table
from warplint.static.kernels import components, domain, signs
from warplint.static.kernels.custom import read_adjoint, uses_of
from warplint.static.kernels.domain import (
    CONSTANT,
    EMPTY,
    ArrayRef,
    HostValue,
    LocalStruct,
    StructRef,
    Taint,
    TupleValue,
    Value,
)
from warplint.static.kernels.effects import Frame, spelled_path, value_of
from warplint.static.kernels.expressions import Expressions
from warplint.static.kernels.summary import Access, AccessKind, Dimension, FaultKind, Marker, Site

__all__ = ["Calls", "parameters_of"]

_MAX_DEPTH = 12


class Calls(Expressions):
    def call(self, node: cst.Call, frame: Frame) -> Any:
        callee = self.expression(node.func, frame) if not is_method(node, frame) else CONSTANT
        target = callee.value if isinstance(callee, HostValue) else None
        if isinstance(target, Function):
            return self.function_call(target, node, frame)
        if isinstance(target, Class):
            return self.construct(target, node, frame)
        last = target.last if isinstance(target, External) else spelled_path(node.func).rpartition(".")[2]
        if last == "static":
            return self.outside(node.args[0].value, frame) if node.args else CONSTANT
        if last == "tid":
            indices = tuple(Value(index=domain.symbol(f"tid:{k}")) for k in range(4))
            return TupleValue(indices, thread=True)
        arguments = [self.expression(a.value, frame) for a in node.args]
        return self.builtin(last, arguments, node, frame)

    def builtin(self, name: str, arguments: list[Any], node: cst.Call, frame: Frame) -> Any:
        first = arguments[0] if arguments else None
        if isinstance(first, ArrayRef) and (
            name in table.ACCUMULATING or name in table.STORING or name in table.BITWISE
        ):
            return self.atomic(name, first, arguments, node, frame)
        if isinstance(first, ArrayRef) and name in table.READING:
            value = self.read(first, (*first.prefix, Dimension(None)), frame, node)
            return replace(value, tile=name.startswith("tile_"))
        values = []
        for argument in arguments:
            if isinstance(argument, ArrayRef):
                if name not in ("len", "view", "reshape", "shape"):
                    # An array handed to something unknown: read at places nobody knows.
                    values.append(self.read(argument, (Dimension(None),), frame, node))
                else:
                    values.append(CONSTANT)
            elif isinstance(argument, TupleValue):
                values.extend(value_of(i) for i in argument.items)
            else:
                values.append(value_of(argument))
        result = self.result(name, values, node, frame)
        return replace(result, **self.refined(name, values, node, frame, result))

    def refined(
        self, name: str, values: list[Value], node: cst.Call, frame: Frame, result: Value
    ) -> dict[str, Any]:
        """What is known of a builtin's result beside its derivatives: components, sign, risks."""
        found: dict[str, Any] = {"tile": name.startswith("tile_") and name != "tile_extract"}
        nodes = [a.value for a in node.args]
        same = len(nodes) == 2 and self.alike(nodes[0], nodes[1], frame)
        sign = signs.of_builtin(name, values, same=same)
        if sign:
            found["sign"] = sign
        if name in table.SHAPES and not any(a.keyword for a in node.args):
            found["parts"] = components.built(table.SHAPES[name], values)
        risk = None
        if name in table.SINGULAR and values:
            alone = table.SINGULAR[name]
            risk = self.risk(name, values[0], values[0].active_paths, frame, node, alone=alone)
        elif name == "pow" and len(values) == 2:
            risk = self.power_risk(values[0], values[1], nodes[-1], frame, node)
        elif name == "div" and len(values) == 2:
            active = values[0].active_paths | values[1].active_paths
            risk = self.risk("division", values[1], active, frame, node, alone=False)
        if risk is not None:
            found["risks"] = result.risks | {risk}
        return found

    def result(self, name: str, values: list[Value], node: cst.Call, frame: Frame) -> Value:
        """The result of a builtin, from the shape of its adjoint."""
        if name == "frac" and len(values) == 1:
            return self.tainted(domain.inactive(*values), FaultKind.FRACTION, name, values, node, frame)
        if name in table.NO_DERIVATIVE:
            result = domain.inactive(*values)
            if name in table.STEPS:
                result = self.tainted(result, FaultKind.STEPS, name, values, node, frame)
            if name in ("int", "int32", "int64", "uint32") and len(values) == 1:
                result = replace(result, index=values[0].index)
            return result
        if name in table.LINEAR:
            result = domain.linear(*values) if values else CONSTANT
            if len(values) == 1:
                result = replace(result, factors=values[0].factors)
            return result
        if name in table.PRODUCT and len(values) >= 2:
            result = domain.product(values[0], values[1])
            return domain.linear(result, values[2]) if len(values) > 2 else result
        if name in ("where", "select") and len(values) == 3:
            if name == "select" or len(node.args) != 3:
                return domain.join(values[1], values[2], values[0].depends)
            test, *nodes = (a.value for a in node.args)
            sides = [self.unselected(v, values[0], frame, node) for v in values[1:]]
            return self.chosen(sides[0], sides[1], values[0], test, (nodes[0], nodes[1]), frame)
        result = domain.nonlinear(*values) if values else CONSTANT
        if name in ("min", "max") and len(values) == 2:
            # The adjoint of a tie goes to the second operand: right for a limit that stands there.
            result = replace(result, kept=values[0].kept)
        return result

    def tainted(
        self, result: Value, kind: FaultKind, name: str, operands: list[Value], node: Any, frame: Frame
    ) -> Value:
        """A result through which the derivative of its operands does not pass."""
        given = EMPTY.union(*(v.active_paths for v in operands))
        site = Site(frame.function.module.source, node)
        taint = Taint(kind, name, site, site, given, self.steps)
        return replace(result, taints=result.taints | {taint}) if given else result

    def unselected(self, value: Value, test: Value, frame: Frame, node: Any) -> Value:
        """An operand of ``where``, which is evaluated whether it is selected or not.

        Its adjoint is zero where it is not selected, but zero times infinity is not.
        """
        guarded = frozenset(r for r in value.risks if domain.share(r.reads, test.depends))
        if not guarded:
            return value
        site = Site(frame.function.module.source, node)
        taints = {Taint(FaultKind.WHERE, r.operation, site, r.site, r.given, r.number) for r in guarded}
        return replace(value, risks=value.risks - guarded, taints=value.taints | taints)

    def atomic(self, name: str, ref: ArrayRef, arguments: list[Any], node: cst.Call, frame: Frame) -> Any:
        tile = name.startswith("tile")
        values = [
            v
            for a in arguments[1:]
            for v in ([value_of(i) for i in a.items] if isinstance(a, TupleValue) else [value_of(a)])
        ]
        value = (values[0] if tile else values[-1]) if values else CONSTANT
        indices = [] if tile else values[:-1]
        dims = (*ref.prefix, *(v.dimension() for v in indices)) or (Dimension(None),)
        depends = frozenset().union(ref.index_depends, *(v.depends for v in indices))
        ref = replace(ref, index_depends=depends)
        if name in table.ACCUMULATING:
            self.write(AccessKind.ACCUMULATE, ref, dims, value, frame, node)
        elif name == "tile_store":
            self.write(AccessKind.STORE, ref, dims, value, frame, node)
        else:
            # min/max: the adjoint compares with the result that is in the array
            self.write(AccessKind.ACCUMULATE, ref, dims, domain.nonlinear(value), frame, node)
        # The return value is read from the array but carries no derivative.
        site = Site(frame.function.module.source, node)
        own = Access(ref.path, AccessKind.READ, dims, site)
        claimed: frozenset[Access] = EMPTY
        if ref.element == "int":
            claimed = frozenset((Marker(ref.path, AccessKind.READ, (), site, fault=FaultKind.CLAIMED),))
        result = Value(depends=claimed | {own})
        if tile or ref.element == "int":
            return result
        given = value.active_paths | {ref.path}
        taint = Taint(FaultKind.ATOMIC_RESULT, name, site, site, given, self.steps)
        return replace(result, taints=frozenset((taint,)))

    def construct(self, cls: Class, node: cst.Call, frame: Frame) -> Any:
        if not cls.is_struct:
            return CONSTANT
        made = LocalStruct(cls)
        names = list(cls.all_fields())
        for position, argument in enumerate(node.args):
            key = argument.keyword.value if argument.keyword else None
            key = key or (names[position] if position < len(names) else "*")
            made.fields[key] = self.expression(argument.value, frame)
        return made

    def function_call(self, function: Function, node: cst.Call, frame: Frame) -> Any:
        arguments = [
            (a.keyword.value if a.keyword else None, self.expression(a.value, frame)) for a in node.args
        ]
        plain = [value_of(v) for _, v in arguments if not isinstance(v, (ArrayRef, StructRef))]
        custom = function.attributes.get("custom_gradient")
        if (
            custom
            or function.kind == "native"
            or frame.depth >= _MAX_DEPTH
            or (function.node in self.active_functions)
        ):
            self.opaque = self.opaque or any(isinstance(v, ArrayRef) for _, v in arguments)
            result = domain.nonlinear(*plain) if plain else CONSTANT
            if function.kind == "native" and function.options.get("adj_snippet") is None:
                result = self.native(function, result, arguments, node, frame)
            if isinstance(custom, Function):
                taints = self.custom_taints(function, custom, arguments, node, frame)
                result = replace(result, taints=result.taints | taints)
            return result
        inner = Frame(function, frame.depth + 1)
        parameters = parameters_of(function)
        names = [p.name.value for p in parameters]
        for position, (keyword, value) in enumerate(arguments):
            name = keyword or (names[position] if position < len(names) else None)
            if name:
                inner.names[name] = value
        for parameter in parameters:
            if parameter.name.value not in inner.names:
                inner.names[parameter.name.value] = CONSTANT
        saved, arms, one_thread = self.condition, self.arms, self.one_thread
        self.active_functions.append(function.node)
        try:
            self.block(function.node.body, inner)
        finally:
            self.active_functions.pop()
            self.condition, self.arms = saved, arms
            self.one_thread = one_thread
        result = self.returned(inner)
        gone = set(inner.markers)
        if function.attributes.get("replay") is not None:
            gone |= {m for m in _markers(result) if m.fault is FaultKind.CLAIMED}
        return _without(result, gone)

    def native(
        self, function: Function, result: Value, arguments: list[Any], node: cst.Call, frame: Frame
    ) -> Value:
        """A call of native code without an adjoint: what it reads, as far as its text tells, is lost."""
        snippet = function.options.get("snippet")
        names = [p.name.value for p in parameters_of(function)]
        arrays = [(n, v) for n, (_, v) in zip(names, arguments, strict=False) if isinstance(v, ArrayRef)]
        text = snippet if isinstance(snippet, str) else ""
        stored = [(n, v) for n, v in arrays if re.search(rf"\b{n}\s*\[[^\]]*\]\s*[-+*/]?=(?!=)", text)]
        operands = [value_of(v) for _, v in arguments if not isinstance(v, (ArrayRef, StructRef))]
        anywhere = (Dimension(None),)
        read = [v for n, v in arrays if (n, v) not in stored]
        operands += [self.read(v, (*v.prefix, *anywhere), frame, node) for v in read]
        value = domain.nonlinear(*operands) if operands else CONSTANT
        given = value.active_paths
        site = Site(function.module.source, function.node.name)
        origin = Site(frame.function.module.source, node)
        taint = Taint(FaultKind.NATIVE, function.name, site, origin, given, self.steps)
        taints = frozenset((taint,)) if given else EMPTY
        for _, ref in stored:
            written = replace(value, taints=value.taints | taints)
            self.write(AccessKind.STORE, ref, (*ref.prefix, *anywhere), written, frame, node, component=True)
        return replace(result, taints=result.taints | taints)

    def custom_taints(
        self, function: Function, adjoint: Function, arguments: list[Any], node: cst.Call, frame: Frame
    ) -> frozenset[Taint]:
        """What is wrong with a custom adjoint as it is written, for the arguments of this call."""
        parameters = parameters_of(function)
        written = read_adjoint(adjoint.node, len(parameters))
        source = adjoint.module.source
        found: set[Taint] = set()
        for position, (parameter, argument) in enumerate(zip(parameters, arguments, strict=False)):
            name = parameter.name.value
            value = argument[1]
            is_array = isinstance(value, ArrayRef)
            given = frozenset((value.path,)) if is_array else value_of(value).active_paths
            if not given or (is_array and value.element == "int"):
                continue
            definition = Site(source, adjoint.node.name)
            if name in written.ignoring:
                site = Site(source, written.ignoring[name])
                found.add(
                    Taint(FaultKind.ADJOINT_IGNORES, function.name, site, definition, given, self.steps)
                )
            elif name in written.assigned and self.shared(node.args[position].value, value, frame):
                site = Site(source, written.assigned[name])
                found.add(
                    Taint(FaultKind.ADJOINT_ASSIGNS, function.name, site, definition, given, self.steps)
                )
            elif name not in written.touched and written.touched:
                found.add(Taint(FaultKind.ADJOINT_MISSES, name, definition, definition, given, self.steps))
        return frozenset(found)

    def shared(self, written: Any, value: Any, frame: Frame) -> bool:
        """Whether an argument is used for anything else, too: then its adjoint is a sum."""
        if isinstance(value, ArrayRef):
            others = [a for a in self.reads if a.path == value.path]
            return bool(others) or uses_of(frame.function.node, _root(written)) > 1
        if isinstance(written, cst.Name):
            return uses_of(frame.function.node, written.value) > 1
        return False

    def returned(self, frame: Frame) -> Any:
        results = frame.returns
        if not results:
            return CONSTANT
        merged = results[0]
        for other in results[1:]:
            if isinstance(merged, TupleValue) and isinstance(other, TupleValue):
                pairs = zip(merged.items, other.items, strict=False)
                merged = TupleValue(tuple(domain.join(value_of(a), value_of(b), EMPTY) for a, b in pairs))
            elif isinstance(merged, Value) and isinstance(other, Value):
                merged = domain.join(merged, other, EMPTY)
        return merged

    def annotation(self, parameter: cst.Param, function: Function) -> Any:
        if parameter.annotation is None:
            return UNKNOWN
        return self.host.resolve(parameter.annotation.annotation, function)


def _markers(result: Any) -> set[Marker]:
    values = result.items if isinstance(result, TupleValue) else (result,)
    return {d for v in values for d in value_of(v).depends if isinstance(d, Marker)}


def _without(result: Any, markers: set[Marker]) -> Any:
    """A returned value: calling the function again computes what is gone only inside it."""
    if not markers:
        return result
    if isinstance(result, TupleValue):
        return replace(result, items=tuple(_without(i, markers) for i in result.items))
    if isinstance(result, Value):
        return replace(result, depends=result.depends - markers)
    return result


def _root(node: Any) -> str:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def parameters_of(function: Function) -> list[cst.Param]:
    params = function.node.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def is_method(node: cst.Call, frame: Frame) -> bool:
    """A method of a local value (``a.dot(b)``), not of a module."""
    root = node.func
    while isinstance(root, cst.Attribute):
        root = root.value
    return (
        isinstance(node.func, cst.Attribute)
        and isinstance(root, cst.Name)
        and root.value in frame.names
        and not isinstance(frame.names[root.value], HostValue)
    )
