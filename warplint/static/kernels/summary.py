"""What a kernel does to its arguments: the records of an effect summary.

A *path* names an array a kernel can reach: a parameter (``q``) or a field of a struct parameter
(``state.q``). Everything is derived from the body alone, never from a launch's ``outputs=``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Monomial = tuple[str, ...]


class IndexClass(str, enum.Enum):
    """How an access chooses its element."""

    THREAD = "thread"
    """The thread's own index."""
    NEIGHBOUR = "neighbour"
    """The thread's own index plus a literal."""
    CONSTANT = "constant"
    OFFSET = "offset"
    """Moved by a launch argument: a time offset in one big array, a row chosen by number."""
    DATA = "data"
    """Read from memory."""
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Dimension:
    """One index of an access, as a polynomial over thread indices, loop variables and arguments.

    ``terms`` is None when the index is not such a polynomial (read from memory, a remainder …).
    Symbols are ``tid0``, ``loop…`` (moving: they take many values in one launch) and names of
    scalar launch arguments, which the host side knows.
    """

    terms: tuple[tuple[Monomial, int], ...] | None
    data: bool = False

    @property
    def moving(self) -> bool:
        """Whether the index takes more than one value in a launch."""
        return self.terms is None or any(_is_moving(m) for m, _ in self.terms)

    @property
    def has_arguments(self) -> bool:
        """Whether a launch argument takes part."""
        return self.terms is not None and any(m and any(not _moves(s) for s in m) for m, _ in self.terms)

    @property
    def kind(self) -> IndexClass:
        if self.terms is None:
            return IndexClass.DATA if self.data else IndexClass.UNKNOWN
        if self.has_arguments:
            return IndexClass.OFFSET
        if not self.moving:
            return IndexClass.CONSTANT
        plain = len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1
        return IndexClass.THREAD if plain else IndexClass.NEIGHBOUR

    def base(self, arguments: Mapping[str, Any]) -> int | None:
        """The part that does not move, in numbers, for a launch with these scalar arguments."""
        if self.terms is None:
            return None
        total = 0
        for monomial, coefficient in self.terms:
            if _is_moving(monomial):
                continue
            product = coefficient
            for symbol in monomial:
                value = arguments.get(symbol)
                if isinstance(value, bool) or not isinstance(value, int):
                    return None
                product *= value
            total += product
        return total


def _moves(symbol: str) -> bool:
    return symbol.startswith(("tid:", "loop:"))


def _is_moving(monomial: Monomial) -> bool:
    return any(_moves(s) for s in monomial)


class AccessKind(str, enum.Enum):
    READ = "read"
    STORE = "store"
    ACCUMULATE = "accumulate"
    MULTIPLY = "multiply"
    """``*=`` and its like: a store that reads its own target."""


@dataclass(frozen=True)
class Site:
    """A node of a source module: where something happens, turned into lines when needed."""

    module: Any
    node: Any


@dataclass(frozen=True)
class Access:
    """One access of a path in the body."""

    path: str
    kind: AccessKind
    dims: tuple[Dimension, ...]
    site: Site
    partial: bool = False
    """A component of the element only, or under a condition that depends on data."""

    @property
    def index_class(self) -> IndexClass:
        """The class of the whole index: its least regular dimension."""
        order = list(IndexClass)
        return max((d.kind for d in self.dims), key=order.index, default=IndexClass.UNKNOWN)


class FaultKind(str, enum.Enum):
    """What makes the adjoint of a kernel wrong whatever the host does."""

    COMPONENT = "component"
    """A component that carries a derivative is assigned again: its adjoint is not cleared."""
    STRUCT_COMPONENT = "struct component"
    """A component of a local struct's field is assigned: no adjoint passes through that at all."""
    UPDATE = "update"
    """A component of an array element is computed from itself, in place."""
    FIELD = "field"
    """A field of a local struct is assigned: no adjoint passes through that in old versions."""
    ELEMENT_PART = "element part"
    """A component or field of an array element is assigned: the same."""
    PICKED = "picked"
    """A ternary picks an array element or a field: the same."""
    LOOP = "loop"
    """The adjoint uses the value of a variable that a loop carries, which is not computed again."""
    BREAK = "break"
    """A loop is left early; its adjoint runs all iterations."""
    WHERE = "where"
    """An operand of ``where`` may be infinite where it is not selected."""
    SINGULAR = "singular"
    """The derivative is infinite at a point that the operand may reach."""
    ADJOINT_ASSIGNS = "adjoint assigns"
    """A custom adjoint overwrites what other uses of its argument have contributed."""
    ADJOINT_MISSES = "adjoint misses"
    """A custom adjoint never contributes to an argument."""
    ADJOINT_IGNORES = "adjoint ignores"
    """A custom adjoint contributes something that does not depend on the incoming adjoint."""
    CLAIMED = "claimed"
    """An index claimed from an atomic counter: claimed again, it is another one."""
    NATIVE = "native"
    """A function in native code that has no adjoint."""
    ATOMIC_RESULT = "atomic result"
    """The value an atomic operation returns carries no derivative."""
    STEPS = "steps"
    """Piecewise constant: the derivative is zero wherever there is one."""
    FRACTION = "fraction"
    """``frac``: its derivative is one, its adjoint is zero."""
    RACE = "race"
    """Many threads store different values into one element."""
    NEIGHBOUR = "neighbour"
    """A thread reads an element that another thread of the same launch overwrites or adds to."""


@dataclass(frozen=True)
class Marker(Access):
    """Stands among the reads for a local value that the adjoint kernel does not have."""

    fault: FaultKind = FaultKind.LOOP


@dataclass(frozen=True)
class Fault:
    """A statement because of which the kernel's own adjoint is (or may be) wrong.

    It matters only if one of the paths ``given`` carries a derivative and ``output`` does too.
    """

    kind: FaultKind
    name: str
    """The variable, function or operation."""
    site: Site
    """The statement to comment."""
    origin: Site
    """Where it comes from: the loop, the first assignment, the singular operation."""
    given: frozenset[str]
    output: str
    versions: str = ""
    """The versions of Warp in which it is one, like ``<1.17``; empty: all."""


@dataclass(frozen=True)
class Need:
    """The adjoint of the kernel uses the *value* of a read.

    It matters only if one of the paths ``given`` carries a derivative and ``output`` does too: in
    ``y[i] = x[i] * p[i]`` the value of x is needed if p is active, and that of p if x is.
    """

    read: Access
    given: frozenset[str]
    output: str


@dataclass(frozen=True)
class InPlaceMultiply:
    """``a[i] *= b`` in any spelling: the write destroys a factor the adjoint multiplies with."""

    path: str
    factors: frozenset[str]
    """Paths through which the other factor carries a derivative."""
    site: Site


@dataclass(frozen=True)
class InPlaceUpdate:
    """A write over an element whose old value the adjoint of the same kernel uses."""

    path: str
    needs: tuple[Need, ...]
    write: Access


@dataclass(frozen=True)
class Parameter:
    """A parameter of the kernel. ``kind`` is array, struct, scalar or unknown."""

    name: str
    kind: str
    integer: bool = False


@dataclass(frozen=True)
class KernelSummary:
    """The effects of one kernel."""

    name: str
    file: str
    site: Site | None = None
    parameters: tuple[Parameter, ...] = ()
    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    """Stores, accumulations and in-place multiplications."""
    needs: frozenset[Need] = frozenset()
    flows: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """For each written path the paths through which a derivative reaches it."""
    multiplies: tuple[InPlaceMultiply, ...] = ()
    updates: tuple[InPlaceUpdate, ...] = ()
    """In-place updates that the adjoint sees, in the order of the body."""
    faults: tuple[Fault, ...] = ()
    """What makes the kernel's own adjoint wrong, in the order of the body."""
    opaque: bool = False
    """Parts of the body could not be understood (native code, unknown calls on arrays)."""
    backward: bool = True
    """False if its backward code is turned off (``enable_backward=False``)."""
    switch: Site | None = None
    """The statement that does so, if it is not the kernel's own decorator."""

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """All array paths the kernel touches, sorted."""
        return tuple(sorted({a.path for a in (*self.reads, *self.writes)}))

    def writes_of(self, path: str) -> tuple[Access, ...]:
        return tuple(a for a in self.writes if a.path == path)

    def reads_of(self, path: str) -> tuple[Access, ...]:
        return tuple(a for a in self.reads if a.path == path)

    def needs_value(self, path: str) -> bool:
        """Whether the adjoint uses the value of ``path`` if everything carries a derivative."""
        return path in self._needed

    @cached_property
    def _needed(self) -> frozenset[str]:
        return frozenset(n.read.path for n in self.needs)

    @cached_property
    def ordered_needs(self) -> tuple[Need, ...]:
        """The needs in an order that does not depend on hashing."""
        return tuple(sorted(self.needs, key=need_order))


def need_order(need: Need) -> tuple[Any, ...]:
    return (need.read.path, need.output, sorted(need.given), str([d.terms for d in need.read.dims]))


def overlaps(
    first: tuple[Dimension, ...],
    first_arguments: Mapping[str, Any],
    second: tuple[Dimension, ...],
    second_arguments: Mapping[str, Any],
) -> bool:
    """Whether two accesses of one array may touch one element, as far as can be told.

    Offsets by launch arguments that are not known make no claim: such accesses count as disjoint,
    because one array that holds all time steps is the usual reason for them.
    """
    for a, b in zip(first, second, strict=False):
        if a.terms is None or b.terms is None:
            if (a.has_arguments or b.has_arguments) and not (a.data or b.data):
                return False
            continue
        base_a, base_b = a.base(first_arguments), b.base(second_arguments)
        if not a.moving and not b.moving:
            if base_a is None or base_b is None or base_a != base_b:
                return False
        elif (a.has_arguments or b.has_arguments) and (base_a is None or base_b is None or base_a != base_b):
            return False
    return True
