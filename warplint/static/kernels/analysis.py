"""Walks a kernel body once (loops twice) and writes down its effects.

The adjoint kernel recomputes the forward values from the arrays as they are at backward time, then
runs the adjoints in reverse. So a read's value matters exactly where an adjoint uses it: as an
operand of something nonlinear, in a condition, in an index. The walk carries these uses along with
every local value and commits them when the value is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import libcst as cst

from warplint.static.host.values import UNKNOWN, ArrayType, Class, External, Function, Unknown
from warplint.static.kernels import builtins as table
from warplint.static.kernels import domain
from warplint.static.kernels.domain import (
    CONSTANT,
    EMPTY,
    ArrayRef,
    HostValue,
    LocalStruct,
    StructRef,
    TupleValue,
    Value,
)
from warplint.static.kernels.summary import (
    Access,
    AccessKind,
    Dimension,
    InPlaceMultiply,
    InPlaceUpdate,
    KernelSummary,
    Need,
    Parameter,
    Site,
    need_order,
)

__all__ = ["HostResolver", "analyze_kernel"]

_MAX_DEPTH = 12
_MAX_STEPS = 60_000
_MAX_NEEDS = 600


class HostResolver(Protocol):
    """What the kernel walk asks of the host side: the value of an expression outside the body."""

    def resolve(self, expression: cst.BaseExpression, function: Function) -> Any: ...


class _BudgetError(Exception):
    pass


def analyze_kernel(function: Function, host: HostResolver) -> KernelSummary:
    """The effect summary of a kernel (or of a func, taken as if it were launched)."""
    walk = _Walk(host)
    frame = _Frame(function)
    parameters = []
    for parameter in _parameters(function):
        name = parameter.name.value
        kind, integer, entry = _classify(name, walk.annotation(parameter, function))
        parameters.append(Parameter(name, kind, integer))
        frame.names[name] = entry
    try:
        walk.block(function.node.body, frame)
    except (_BudgetError, RecursionError):
        walk.opaque = True
    return KernelSummary(
        name=function.name,
        file=function.module.source.display,
        site=Site(function.module.source, function.node),
        parameters=tuple(parameters),
        reads=tuple(walk.reads),
        writes=tuple(walk.writes),
        needs=frozenset(walk.needs),
        flows={path: frozenset(sources) for path, sources in walk.flows.items()},
        multiplies=tuple(walk.multiplies),
        updates=walk.updates(),
        opaque=walk.opaque,
        backward=function.options.get("enable_backward") is not False,
    )


def _parameters(function: Function) -> list[cst.Param]:
    params = function.node.params
    return [*params.posonly_params, *params.params, *params.kwonly_params]


def _classify(name: str, annotation: Any) -> tuple[str, bool, Any]:
    """Kind of a parameter, whether it is an integer, and what its name stands for in the body."""
    if isinstance(annotation, ArrayType):
        ref = ArrayRef(name, annotation.ndim, annotation.element, struct=annotation.struct)
        return "array", annotation.element == "int", ref
    if isinstance(annotation, Class) and annotation.is_struct:
        return "struct", False, StructRef(name, annotation)
    last = annotation.last if isinstance(annotation, External) else getattr(annotation, "__name__", "")
    if last:
        # A scalar argument: its value is stored in the tape, so nothing can overwrite it.
        return "scalar", last in table.INTEGER_TYPES, Value(index=domain.symbol(name))
    return "unknown", False, ArrayRef(name, None, "unknown")


class _Frame:
    """The locals of the kernel or of one inlined function."""

    def __init__(self, function: Function, depth: int = 0) -> None:
        self.function = function
        self.names: dict[str, Any] = {}
        self.depth = depth
        self.returns: list[Any] = []


@dataclass(frozen=True)
class _Moment:
    """When and on which arms of the branches an access came first."""

    number: int
    arms: tuple[tuple[int, bool], ...]
    text: str

    def before(self, other: _Moment) -> bool:
        """Whether one thread can come from here to ``other``."""
        taken = dict(self.arms)
        return self.number < other.number and all(taken.get(b, arm) == arm for b, arm in other.arms)


class _Walk:
    def __init__(self, host: HostResolver) -> None:
        self.host = host
        self.reads: dict[Access, None] = {}
        self.writes: dict[Access, None] = {}
        self.needs: set[Need] = set()
        self.flows: dict[str, set[str]] = {}
        self.multiplies: dict[InPlaceMultiply, None] = {}
        self.opaque = False
        self.condition: frozenset[Access] = EMPTY
        self.steps = 0
        self.active_functions: list[Any] = []
        self.moments: dict[Access, _Moment] = {}
        self.arms: tuple[tuple[int, bool], ...] = ()
        self.preserved: tuple[tuple[frozenset[Access], str], ...] = ()
        self.harmless: set[tuple[Access, Access, str | None]] = set()

    # -- effects -------------------------------------------------------------------------------

    def read(self, ref: ArrayRef, dims: tuple[Dimension, ...], frame: _Frame, node: Any) -> Value:
        access = Access(ref.path, AccessKind.READ, dims, Site(frame.function.module.source, node))
        self.reads[access] = None
        self.happened(access, node, frame)
        own = frozenset((access,))
        active = EMPTY if ref.element == "int" else own
        return Value(
            depends=own | ref.index_depends,
            active=active,
            needs=domain.given(ref.index_depends, frozenset((ref.path,))) if active else EMPTY,
            factors=frozenset(((access, EMPTY),)) if active else EMPTY,
            kept=own,
        )

    def happened(self, access: Access, place: Any, frame: _Frame) -> None:
        """Remember when an access came first; ``place`` is the element as written, if it has a name."""
        if access not in self.moments:
            regular = all(d.terms is not None for d in access.dims)
            text = "" if regular or place is None else frame.function.module.source.code(place)
            self.moments[access] = _Moment(len(self.moments), self.arms, text)

    def write(
        self,
        kind: AccessKind,
        ref: ArrayRef,
        dims: tuple[Dimension, ...],
        value: Value,
        frame: _Frame,
        node: Any,
        *,
        component: bool = False,
        place: Any = None,
    ) -> None:
        value = domain.under(value, self.condition)
        partial = component or bool(self.condition)
        access = Access(ref.path, kind, dims, Site(frame.function.module.source, node), partial)
        self.writes[access] = None
        if not component:
            self.happened(access, place, frame)
            self._stays_the_same(access, value, frame)
        if ref.element == "int":
            return
        pending = value.needs | domain.given(ref.index_depends, value.active_paths)
        if kind is not AccessKind.ACCUMULATE:
            # Which elements lose their old adjoint depends on the condition and on the index.
            own = frozenset((ref.path,))
            pending |= domain.given(self.condition | ref.index_depends, own)
        for need in pending:
            self.needs.add(Need(need.read, need.given, ref.path))
        self.flows.setdefault(ref.path, set()).update(value.active_paths)
        if kind is AccessKind.STORE:
            self._multiplied(ref, dims, value, frame, node)

    def _multiplied(
        self, ref: ArrayRef, dims: tuple[Dimension, ...], value: Value, frame: _Frame, node: Any
    ) -> None:
        # ``a[i] = a[i] * b[i]`` in any spelling, ``a *= b`` included
        own = [others for access, others in value.factors if access.path == ref.path and access.dims == dims]
        factors: frozenset[str] = EMPTY.union(*own) - {ref.path}
        if factors:
            site = Site(frame.function.module.source, node)
            self.multiplies[InPlaceMultiply(ref.path, factors, site)] = None

    def _stays_the_same(self, access: Access, value: Value, frame: _Frame) -> None:
        """Reads that this store does not spoil: computed again, they lead to the same result."""
        if access.kind is not AccessKind.STORE:
            return
        for read in value.kept:
            if read.path == access.path and read.dims == access.dims:
                self.harmless.add((read, access, access.path))
        stored = access.site.node.value if isinstance(access.site.node, cst.Assign) else None
        for reads, bound in self.preserved:
            if stored is None or frame.function.module.source.code(stored) != bound:
                continue
            for read in reads:
                if read.path == access.path and read.dims == access.dims:
                    self.harmless.add((read, access, None))

    def updates(self) -> tuple[InPlaceUpdate, ...]:
        """Needs whose element a later statement of this kernel overwrites."""
        found = []
        for write in self.writes:
            moment = self.moments.get(write)
            if moment is None:
                continue
            needs = [n for n in self.needs if self._spoils(write, moment, n)]
            if needs:
                needs.sort(key=lambda n: (self.moments[n.read].number, need_order(n)))
                found.append(InPlaceUpdate(write.path, tuple(needs), write))
        return tuple(found)

    def _spoils(self, write: Access, moment: _Moment, need: Need) -> bool:
        read = self.moments.get(need.read)
        return (
            read is not None
            and need.read.path == write.path
            and read.before(moment)
            and _same_element(need.read, read, write, moment)
            and (need.read, write, need.output) not in self.harmless
            and (need.read, write, None) not in self.harmless
        )

    # -- statements ----------------------------------------------------------------------------

    def block(self, body: Any, frame: _Frame) -> bool:
        """Run a block; True if it cannot fall through."""
        if isinstance(body, cst.SimpleStatementSuite):  # ``if x: return``
            return self.statement(body, frame)
        return any(self.statement(statement, frame) for statement in body.body)

    def statement(self, node: Any, frame: _Frame) -> bool:
        self._step()
        if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
            return any(self.small(small, frame) for small in node.body)
        if isinstance(node, cst.If):
            return self.branch(node, frame)
        if isinstance(node, cst.For):
            iterated = self.expression(node.iter, frame)
            index = Value(depends=_value(iterated).depends, index=domain.symbol(f"loop:{id(node)}"))
            if _value(iterated).depends and not _is_range(node.iter):
                index = replace(index, index=None)  # neighbours found by a query: read from memory
            self.loop(node, _value(iterated).depends, frame, index)
        elif isinstance(node, cst.While):
            test = self.value(node.test, frame)
            self.loop(node, test.depends, frame, None)
        elif isinstance(node, cst.With):
            return self.block(node.body, frame)
        return False

    def small(self, node: Any, frame: _Frame) -> bool:
        if isinstance(node, cst.Assign):
            value = self.expression(node.value, frame)
            for target in node.targets:
                if isinstance(target.target, cst.Name) and isinstance(value, Value):
                    value = self.bounded(target.target.value, value, node.value, frame)
                self.assign(target.target, value, frame, node)
        elif isinstance(node, cst.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.expression(node.value, frame), frame, node)
        elif isinstance(node, cst.AugAssign):
            self.augmented(node, frame)
        elif isinstance(node, cst.Expr):
            self.expression(node.value, frame)
        elif isinstance(node, cst.Return):
            value = self.expression(node.value, frame) if node.value is not None else CONSTANT
            if isinstance(value, Value):
                value = domain.under(value, self.condition)
            frame.returns.append(value)
            return True
        elif isinstance(node, (cst.Break, cst.Continue)):
            return True
        return False

    def branch(self, node: cst.If, frame: _Frame) -> bool:
        known = self.static_test(node.test, frame)
        if known is not None:
            if known:
                return self.block(node.body, frame)
            return self.orelse(node, frame)
        test = self.value(node.test, frame).depends
        saved, before, arms = self.condition, dict(frame.names), self.arms
        preserved = self.preserved
        self.condition = saved | test
        self.arms = (*arms, (id(node), True))
        self.preserved = (*preserved, *self.self_preserving(node.test, frame))
        stopped = self.block(node.body, frame)
        then_names, frame.names = frame.names, before
        self.arms, self.preserved = (*arms, (id(node), False)), preserved
        other_stopped = self.orelse(node, frame)
        self.condition, self.arms = saved, arms
        if stopped and other_stopped:
            return True
        if stopped or other_stopped:
            # The rest of the body runs only where the other branch was taken.
            self.condition = saved | test
            self.arms = (*arms, (id(node), other_stopped))
            if other_stopped:
                frame.names = then_names
            return False
        frame.names = self.merge(then_names, frame.names, test)
        return False

    def self_preserving(self, test: Any, frame: _Frame) -> list[tuple[frozenset[Access], str]]:
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

    def orelse(self, node: cst.If, frame: _Frame) -> bool:
        if isinstance(node.orelse, cst.If):
            return self.branch(node.orelse, frame)
        if isinstance(node.orelse, cst.Else):
            return self.block(node.orelse.body, frame)
        return False

    def merge(self, left: dict[str, Any], right: dict[str, Any], test: frozenset[Access]) -> dict[str, Any]:
        merged = dict(right)
        for name, value in left.items():
            other = right.get(name)
            if isinstance(value, Value) and isinstance(other, Value):
                merged[name] = domain.join(value, other, test)
            else:
                merged[name] = value
        return merged

    def loop(self, node: Any, bound: frozenset[Access], frame: _Frame, index: Value | None) -> None:
        saved, arms = self.condition, self.arms
        self.condition = saved | bound
        before = dict(frame.names)
        for _ in range(2):  # the second turn sees what the first one carried over
            if index is not None:
                self.assign(node.target, index, frame, node)
            self.block(node.body, frame)
            frame.names = self.merge(frame.names, before, bound)
            before = dict(frame.names)
        self.condition, self.arms = saved, arms

    def static_test(self, node: Any, frame: _Frame) -> bool | None:
        """The truth of a test that is decided when the kernel is built, else None."""
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
            inner = self.static_test(node.expression, frame)
            return None if inner is None else not inner
        value = UNKNOWN
        if isinstance(node, cst.Call) and _dotted(node.func).endswith("static") and node.args:
            value = self.host.resolve(node.args[0].value, frame.function)
        elif isinstance(node, cst.Name) and node.value not in frame.names:
            value = self.host.resolve(node, frame.function)
        return bool(value) if isinstance(value, (bool, int)) else None

    # -- assignment ----------------------------------------------------------------------------

    def assign(self, target: Any, value: Any, frame: _Frame, node: Any) -> None:
        if isinstance(target, cst.Name):
            single = isinstance(value, TupleValue) and value.thread
            frame.names[target.value] = value.items[0] if single else value
        elif isinstance(target, (cst.Tuple, cst.List)):
            items = value.items if isinstance(value, TupleValue) else ()
            for position, element in enumerate(target.elements):
                item = items[position] if position < len(items) else value
                if isinstance(item, TupleValue):
                    item = CONSTANT
                self.assign(element.value, item, frame, node)
        elif isinstance(target, (cst.Subscript, cst.Attribute)):
            self.store(target, _value(value), AccessKind.STORE, frame, node)

    def store(self, target: Any, value: Value, kind: AccessKind, frame: _Frame, node: Any) -> None:
        place = self.place(target, frame)
        if place is not None:
            ref, dims, component = place
            self.write(kind, ref, dims, value, frame, node, component=component, place=target)
            return
        # A component of a local: the local now depends on the new part as well.
        root = target
        while isinstance(root, (cst.Subscript, cst.Attribute)):
            root = root.value
        if isinstance(target, cst.Attribute) and isinstance(target.value, cst.Name):
            owner = frame.names.get(target.value.value)
            if isinstance(owner, LocalStruct):
                owner.fields[target.attr.value] = value
                return
        if isinstance(root, cst.Name):
            old = frame.names.get(root.value)
            if isinstance(old, Value):
                frame.names[root.value] = domain.join(replace(old, index=None), value, self.condition)
            elif isinstance(old, LocalStruct):
                old.fields["*"] = domain.linear(_value(old.fields.get("*")), value)

    def place(self, target: Any, frame: _Frame) -> tuple[ArrayRef, tuple[Dimension, ...], bool] | None:
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

    def reference(self, node: Any, frame: _Frame) -> Any:
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

    def bounded(self, name: str, value: Value, node: Any, frame: _Frame) -> Value:
        """``if v >= c: v = c``: stored where v was read, the result leads to itself again."""
        old = frame.names.get(name)
        if not isinstance(old, Value) or not old.kept:
            return value
        text = frame.function.module.source.code(node)
        if any(old.kept <= reads and text == bound for reads, bound in self.preserved):
            return replace(value, kept=old.kept)
        return value

    def augmented(self, node: cst.AugAssign, frame: _Frame) -> None:
        value = self.value(node.value, frame)
        operator = _OPERATORS.get(type(node.operator).__name__.removesuffix("Assign"), "?")
        place = self.place(node.target, frame) if not isinstance(node.target, cst.Name) else None
        if place is not None:
            ref, dims, component = place
            if operator in "+-":
                kind, result = AccessKind.ACCUMULATE, value
            else:
                kind = AccessKind.STORE
                result = self.binary(operator, self.read(ref, dims, frame, node), value)
            self.write(kind, ref, dims, result, frame, node, component=component, place=node.target)
            return
        old = self.value(node.target, frame)
        self.assign(node.target, self.binary(operator, old, value), frame, node)

    # -- expressions ---------------------------------------------------------------------------

    def value(self, node: Any, frame: _Frame) -> Value:
        return _value(self.expression(node, frame))

    def expression(self, node: Any, frame: _Frame) -> Any:
        self._step()
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            return handler(self, node, frame)
        return CONSTANT

    def name(self, node: cst.Name, frame: _Frame) -> Any:
        if node.value in frame.names:
            return frame.names[node.value]
        return self.outside(node, frame)

    def outside(self, node: Any, frame: _Frame) -> Any:
        value = self.host.resolve(node, frame.function)
        if isinstance(value, int) and not isinstance(value, bool):
            return Value(index=domain.number(value))
        if isinstance(value, (float, bool, str)):
            return CONSTANT
        return HostValue(value)

    def integer(self, node: cst.Integer, frame: _Frame) -> Any:
        return Value(index=domain.number(int(node.value.replace("_", ""), 0)))

    def attribute(self, node: cst.Attribute, frame: _Frame) -> Any:
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
            return replace(owner, index=None, factors=EMPTY, kept=EMPTY)
        return CONSTANT

    def subscript(self, node: cst.Subscript, frame: _Frame) -> Any:
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
                key = "".join(str(d.terms) for d in dims)
                return replace(owner, index=domain.symbol(f"{owner.index}[{key}]"))
            component = replace(owner, index=None, factors=EMPTY, kept=EMPTY)
            return domain.under(component, depends)
        return CONSTANT

    def dimensions(
        self, elements: Sequence[cst.SubscriptElement], frame: _Frame
    ) -> tuple[tuple[Dimension, ...], frozenset[Access]]:
        dims: list[Dimension] = []
        depends: frozenset[Access] = EMPTY
        for element in elements:
            if isinstance(element.slice, cst.Index):
                entry = self.expression(element.slice.value, frame)
                several = isinstance(entry, TupleValue) and not entry.thread
                for item in entry.items if several else (entry,):
                    value = _value(item)
                    depends |= value.depends
                    dims.append(value.dimension())
            else:
                dims.append(Dimension(None))
        return tuple(dims), depends

    def binary_operation(self, node: cst.BinaryOperation, frame: _Frame) -> Any:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return self.binary(_OPERATORS.get(type(node.operator).__name__, "?"), left, right)

    def binary(self, operator: str, left: Value, right: Value) -> Value:
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
        return result

    def unary(self, node: cst.UnaryOperation, frame: _Frame) -> Any:
        operand = self.value(node.expression, frame)
        if isinstance(node.operator, cst.Minus):
            negated = domain.combine("-", Value(index=()), operand)
            return replace(operand, index=negated, kept=EMPTY)
        if isinstance(node.operator, cst.Plus):
            return operand
        return domain.inactive(operand)

    def comparison(self, node: cst.Comparison, frame: _Frame) -> Any:
        sides = [node.left, *(c.comparator for c in node.comparisons)]
        return domain.inactive(*(self.value(s, frame) for s in sides))

    def boolean(self, node: cst.BooleanOperation, frame: _Frame) -> Any:
        return domain.inactive(self.value(node.left, frame), self.value(node.right, frame))

    def ternary(self, node: cst.IfExp, frame: _Frame) -> Any:
        test = self.value(node.test, frame)
        left, right = self.expression(node.body, frame), self.expression(node.orelse, frame)
        if isinstance(left, Value) and isinstance(right, Value):
            return self.chosen(left, right, test, node.test, (node.body, node.orelse), frame)
        return left

    def chosen(
        self, left: Value, right: Value, test: Value, condition: Any, nodes: tuple[Any, Any], frame: _Frame
    ) -> Value:
        """Either of two values; ``c if a[i] >= c else a[i]`` is a limit like ``min(a[i], c)``."""
        result = domain.join(left, right, test.depends)
        code = frame.function.module.source.code
        for reads, bound in self.self_preserving(condition, frame):
            if code(nodes[0]) == bound and right.kept:
                result = replace(result, kept=right.kept | reads)
        return result

    def tuple(self, node: Any, frame: _Frame) -> Any:
        return TupleValue(tuple(self.expression(e.value, frame) for e in node.elements))

    # -- calls ---------------------------------------------------------------------------------

    def call(self, node: cst.Call, frame: _Frame) -> Any:
        callee = self.expression(node.func, frame) if not _is_method(node, frame) else CONSTANT
        target = callee.value if isinstance(callee, HostValue) else None
        if isinstance(target, Function):
            return self.function_call(target, node, frame)
        if isinstance(target, Class):
            return self.construct(target, node, frame)
        last = target.last if isinstance(target, External) else _dotted(node.func).rpartition(".")[2]
        if last == "static":
            return self.outside(node.args[0].value, frame) if node.args else CONSTANT
        if last == "tid":
            indices = tuple(Value(index=domain.symbol(f"tid:{k}")) for k in range(4))
            return TupleValue(indices, thread=True)
        arguments = [self.expression(a.value, frame) for a in node.args]
        return self.builtin(last, arguments, node, frame)

    def builtin(self, name: str, arguments: list[Any], node: cst.Call, frame: _Frame) -> Any:
        first = arguments[0] if arguments else None
        if isinstance(first, ArrayRef) and (
            name in table.ACCUMULATING or name in table.STORING or name in table.BITWISE
        ):
            return self.atomic(name, first, arguments, node, frame)
        if isinstance(first, ArrayRef) and name in table.READING:
            return self.read(first, (*first.prefix, Dimension(None)), frame, node)
        values = []
        for argument in arguments:
            if isinstance(argument, ArrayRef):
                if name not in ("len", "view", "reshape", "shape"):
                    # An array handed to something unknown: read at places nobody knows.
                    values.append(self.read(argument, (Dimension(None),), frame, node))
                else:
                    values.append(CONSTANT)
            elif isinstance(argument, TupleValue):
                values.extend(_value(i) for i in argument.items)
            else:
                values.append(_value(argument))
        if name in table.NO_DERIVATIVE:
            result = domain.inactive(*values)
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
            return self.chosen(values[1], values[2], values[0], test, (nodes[0], nodes[1]), frame)
        result = domain.nonlinear(*values) if values else CONSTANT
        if name in ("min", "max") and len(values) == 2:
            # The adjoint of a tie goes to the second operand: right for a limit that stands there.
            result = replace(result, kept=values[0].kept)
        return result

    def atomic(self, name: str, ref: ArrayRef, arguments: list[Any], node: cst.Call, frame: _Frame) -> Any:
        tile = name.startswith("tile")
        values = [
            v
            for a in arguments[1:]
            for v in ([_value(i) for i in a.items] if isinstance(a, TupleValue) else [_value(a)])
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
        own = Access(ref.path, AccessKind.READ, dims, Site(frame.function.module.source, node))
        return Value(depends=frozenset((own,)))

    def construct(self, cls: Class, node: cst.Call, frame: _Frame) -> Any:
        if not cls.is_struct:
            return CONSTANT
        made = LocalStruct()
        names = list(cls.all_fields())
        for position, argument in enumerate(node.args):
            key = argument.keyword.value if argument.keyword else None
            key = key or (names[position] if position < len(names) else "*")
            made.fields[key] = self.expression(argument.value, frame)
        return made

    def function_call(self, function: Function, node: cst.Call, frame: _Frame) -> Any:
        arguments = [
            (a.keyword.value if a.keyword else None, self.expression(a.value, frame)) for a in node.args
        ]
        plain = [_value(v) for _, v in arguments if not isinstance(v, (ArrayRef, StructRef))]
        custom = function.attributes.get("custom_gradient") or function.kind == "native"
        if custom or frame.depth >= _MAX_DEPTH or function.node in self.active_functions:
            self.opaque = self.opaque or any(isinstance(v, ArrayRef) for _, v in arguments)
            return domain.nonlinear(*plain) if plain else CONSTANT
        inner = _Frame(function, frame.depth + 1)
        parameters = _parameters(function)
        names = [p.name.value for p in parameters]
        for position, (keyword, value) in enumerate(arguments):
            name = keyword or (names[position] if position < len(names) else None)
            if name:
                inner.names[name] = value
        for parameter in parameters:
            if parameter.name.value not in inner.names:
                inner.names[parameter.name.value] = CONSTANT
        saved, arms = self.condition, self.arms
        self.active_functions.append(function.node)
        try:
            self.block(function.node.body, inner)
        finally:
            self.active_functions.pop()
            self.condition, self.arms = saved, arms
        return self.returned(inner)

    def returned(self, frame: _Frame) -> Any:
        results = frame.returns
        if not results:
            return CONSTANT
        merged = results[0]
        for other in results[1:]:
            if isinstance(merged, TupleValue) and isinstance(other, TupleValue):
                pairs = zip(merged.items, other.items, strict=False)
                merged = TupleValue(tuple(domain.join(_value(a), _value(b), EMPTY) for a, b in pairs))
            elif isinstance(merged, Value) and isinstance(other, Value):
                merged = domain.join(merged, other, EMPTY)
        return merged

    def annotation(self, parameter: cst.Param, function: Function) -> Any:
        if parameter.annotation is None:
            return UNKNOWN
        return self.host.resolve(parameter.annotation.annotation, function)

    def _step(self) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS or len(self.needs) > 50 * _MAX_NEEDS:
            raise _BudgetError


def _value(entry: Any) -> Value:
    """The number an entry stands for when it is used as one."""
    if isinstance(entry, Value):
        return entry
    if isinstance(entry, TupleValue):
        return _value(entry.items[0]) if entry.items else CONSTANT
    if isinstance(entry, LocalStruct):
        values = [_value(v) for v in entry.fields.values()]
        return domain.linear(*values) if values else CONSTANT
    return CONSTANT


def _same_element(read: Access, first: _Moment, write: Access, second: _Moment) -> bool:
    """Whether a read and a write of one thread certainly meet."""
    if not read.dims or read.dims != write.dims:
        return False
    return all(d.terms is not None for d in read.dims) or (first.text == second.text != "")


def _dotted(node: Any) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _is_range(node: Any) -> bool:
    return isinstance(node, cst.Call) and _dotted(node.func).rpartition(".")[2] == "range"


def _is_method(node: cst.Call, frame: _Frame) -> bool:
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


_OPERATORS = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "MatrixMultiply": "@",
    "Divide": "/",
    "FloorDivide": "//",
    "Modulo": "%",
    "Power": "**",
}

_EXPRESSIONS: dict[type, Any] = {
    cst.Name: _Walk.name,
    cst.Integer: _Walk.integer,
    cst.Attribute: _Walk.attribute,
    cst.Subscript: _Walk.subscript,
    cst.BinaryOperation: _Walk.binary_operation,
    cst.UnaryOperation: _Walk.unary,
    cst.Comparison: _Walk.comparison,
    cst.BooleanOperation: _Walk.boolean,
    cst.IfExp: _Walk.ternary,
    cst.Tuple: _Walk.tuple,
    cst.List: _Walk.tuple,
    cst.Call: _Walk.call,
}
