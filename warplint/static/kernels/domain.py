"""The abstract values inside a kernel body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from warplint.static.kernels.summary import Access, Dimension, FaultKind, Monomial, Site

EMPTY: frozenset[Any] = frozenset()
Polynomial = Mapping[Monomial, int]
Key = tuple[Any, ...]
"""Which component: integers, names (``p`` of a transform) or polynomials."""


@dataclass(frozen=True)
class Pending:
    """A need whose output is not known yet: it becomes a ``Need`` when the value is stored."""

    read: Access
    given: frozenset[str]


@dataclass(frozen=True)
class Taint:
    """A fault whose output is not known yet, like a pending need."""

    kind: FaultKind
    name: str
    site: Site
    origin: Site
    given: frozenset[str]
    number: int = field(default=0, compare=False)
    """Its place in the order of the body."""
    versions: str = ""


@dataclass(frozen=True)
class Risk:
    """An operation that is not finite (or has no finite derivative) for some operands."""

    operation: str
    site: Site
    reads: frozenset[Access]
    """The reads its operand depends on: a test of one of them may be what guards it."""
    given: frozenset[str]
    alone: bool
    """Whether only the derivative is infinite, so that nothing shows in the forward pass."""
    number: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Parts:
    """Components of a vector, matrix or quaternion that are known one by one."""

    known: tuple[tuple[Key, Value], ...]
    rest: Value


@dataclass(frozen=True)
class Value:
    """A number, vector or tile computed in the kernel."""

    depends: frozenset[Access] = EMPTY
    """Reads whose values take part in it, in any way."""
    active: frozenset[Access] = EMPTY
    """Reads through which a derivative reaches it."""
    needs: frozenset[Pending] = EMPTY
    """Values the adjoint uses if a derivative leaves through this value."""
    index: tuple[tuple[Monomial, int], ...] | None = None
    """The value as a polynomial of thread indices and launch arguments, if it is one."""
    factors: frozenset[tuple[Access, frozenset[str]]] = EMPTY
    """Reads this value is a plain multiple of, with the active paths of the other factors."""
    kept: frozenset[Access] = EMPTY
    """Reads that give the same result again once this value is stored in their place: the read
    itself, and ``min(a[i], c)``, which stays what it is."""
    taints: frozenset[Taint] = EMPTY
    risks: frozenset[Risk] = EMPTY
    parts: Parts | None = None
    sign: str = ""
    """``positive`` (away from zero), ``nonnegative``, ``nonpositive`` or unknown."""
    tile: bool = False
    """A tile: its elements are memory of their own, and assigning one clears its adjoint."""
    struct: Any = None
    """The class of an element that was loaded from an array of structs."""

    @property
    def active_paths(self) -> frozenset[str]:
        return frozenset(a.path for a in self.active)

    def dimension(self) -> Dimension:
        return Dimension(self.index, data=bool(self.depends))


CONSTANT = Value()


@dataclass(frozen=True)
class ArrayRef:
    """An array, or a row of one."""

    path: str
    ndim: int | None
    element: str
    prefix: tuple[Dimension, ...] = ()
    index_depends: frozenset[Access] = EMPTY
    struct: Any = None


@dataclass(frozen=True)
class StructRef:
    """A struct parameter or a struct inside one."""

    path: str
    cls: Any = None


@dataclass
class LocalStruct:
    """A struct made in the kernel."""

    cls: Any = None
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TupleValue:
    items: tuple[Any, ...]
    thread: bool = False
    """The result of ``tid()``: one number or several, as the target wants."""


@dataclass(frozen=True)
class HostValue:
    """Something of the surrounding Python: a module, a function, a constant."""

    value: Any


def polynomial(value: Value) -> dict[Monomial, int] | None:
    return None if value.index is None else dict(value.index)


def pack(terms: Mapping[Monomial, int] | None) -> tuple[tuple[Monomial, int], ...] | None:
    if terms is None or len(terms) > 12:
        return None
    return tuple(sorted((m, c) for m, c in terms.items() if c))


def symbol(name: str) -> tuple[tuple[Monomial, int], ...]:
    return (((name,), 1),)


def number(value: int) -> tuple[tuple[Monomial, int], ...] | None:
    return pack({(): value})


def combine(operator: str, left: Value, right: Value) -> tuple[tuple[Monomial, int], ...] | None:
    """Index arithmetic: sums, differences and products of polynomials."""
    a, b = polynomial(left), polynomial(right)
    if a is None or b is None:
        return None
    result: dict[Monomial, int] = {}
    if operator in "+-":
        sign = 1 if operator == "+" else -1
        result.update(a)
        for m, c in b.items():
            result[m] = result.get(m, 0) + sign * c
        return pack(result)
    if operator == "*":
        for m1, c1 in a.items():
            for m2, c2 in b.items():
                m = tuple(sorted((*m1, *m2)))
                result[m] = result.get(m, 0) + c1 * c2
        return pack(result)
    return None


def given(needs: frozenset[Access], paths: frozenset[str]) -> frozenset[Pending]:
    """The needs for these reads if one of ``paths`` is active."""
    return frozenset(Pending(r, paths) for r in needs) if paths else EMPTY


def _union(values: tuple[Value, ...]) -> Value:
    """All that several operands bring along, without anything their combination adds."""
    return Value(
        depends=EMPTY.union(*(v.depends for v in values)),
        active=EMPTY.union(*(v.active for v in values)),
        needs=EMPTY.union(*(v.needs for v in values)),
        taints=EMPTY.union(*(v.taints for v in values)),
        risks=EMPTY.union(*(v.risks for v in values)),
    )


def linear(*values: Value) -> Value:
    """A result whose adjoint passes on to every operand without using values."""
    if len(values) == 1:
        return replace(values[0], index=None, kept=EMPTY, parts=None, sign="")
    return _union(values)


def nonlinear(*values: Value) -> Value:
    """A result whose adjoint uses the value of every operand if any of them is active."""
    base = _union(values)
    return replace(base, needs=base.needs | given(base.depends, base.active_paths))


def inactive(*values: Value) -> Value:
    """A result without derivative: comparisons, integers, rounding."""
    return Value(depends=EMPTY.union(*(v.depends for v in values)))


def product(left: Value, right: Value) -> Value:
    """``left * right``: each side's adjoint uses the other side's value."""
    base = _union((left, right))
    needs = base.needs | given(right.depends, left.active_paths) | given(left.depends, right.active_paths)
    factors = {(a, f | right.active_paths) for a, f in left.factors}
    factors |= {(a, f | left.active_paths) for a, f in right.factors}
    return replace(base, needs=needs, factors=frozenset(factors))


def quotient(left: Value, right: Value) -> Value:
    """``left / right``: the divisor's value is always used, the dividend's if the divisor is active."""
    base = _union((left, right))
    needs = base.needs | given(right.depends, base.active_paths) | given(left.depends, right.active_paths)
    factors = frozenset((a, f | right.active_paths) for a, f in left.factors)
    return replace(base, needs=needs, factors=factors)


def share(some: frozenset[Access], others: frozenset[Access]) -> bool:
    """Whether two sets of reads have an element of an array in common, wherever it is read."""
    places = {(a.path, a.dims) for a in others}
    return any((a.path, a.dims) in places for a in some)


def under(value: Value, condition: frozenset[Access]) -> Value:
    """A value computed under a condition: which branch ran decides where its adjoint goes."""
    if not condition:
        return value
    return replace(
        value,
        depends=value.depends | condition,
        needs=value.needs | given(condition, value.active_paths),
    )


def join(left: Value, right: Value, condition: frozenset[Access]) -> Value:
    """Either of two values."""
    if left == right:
        return left
    merged = replace(
        _union((left, right)),
        index=left.index if left.index == right.index else None,
        factors=left.factors | right.factors,
        kept=left.kept & right.kept,
        parts=_joined_parts(left, right, condition),
        sign=_weaker_sign(left.sign, right.sign),
    )
    return under(merged, condition)


def _joined_parts(left: Value, right: Value, condition: frozenset[Access]) -> Parts | None:
    if left.parts is None or right.parts is None:
        return None
    one, two = dict(left.parts.known), dict(right.parts.known)
    known = tuple(
        (key, join(one.get(key, left.parts.rest), two.get(key, right.parts.rest), condition))
        for key in dict.fromkeys((*one, *two))
    )
    return Parts(known, join(left.parts.rest, right.parts.rest, condition))


def _weaker_sign(left: str, right: str) -> str:
    if left == right:
        return left
    return "nonnegative" if {left, right} == {"positive", "nonnegative"} else ""
