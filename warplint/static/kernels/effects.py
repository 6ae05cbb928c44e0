"""What a kernel does to its arguments, written down as the walk meets it.

The adjoint kernel recomputes the forward values from the arrays as they are at backward time, then
runs the adjoints in reverse. So a read's value matters exactly where an adjoint uses it: as an
operand of something nonlinear, in a condition, in an index. The walk carries these uses along with
every local value and commits them when the value is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import libcst as cst

from warplint.static.host.values import Function
from warplint.static.kernels import domain
from warplint.static.kernels.domain import CONSTANT, EMPTY, ArrayRef, LocalStruct, Pending, TupleValue, Value
from warplint.static.kernels.summary import (
    Access,
    AccessKind,
    Dimension,
    Fault,
    FaultKind,
    InPlaceMultiply,
    InPlaceUpdate,
    Marker,
    Need,
    Site,
    need_order,
)

__all__ = ["BudgetError", "Effects", "Frame", "HostResolver", "spelled_path", "value_of"]

_MAX_STEPS = 60_000
_MAX_NEEDS = 600


class HostResolver(Protocol):
    """What the kernel walk asks of the host side: the value of an expression outside the body."""

    def resolve(self, expression: cst.BaseExpression, function: Function) -> Any: ...


class BudgetError(Exception):
    pass


class Frame:
    """The locals of the kernel or of one inlined function."""

    def __init__(self, function: Function, depth: int = 0) -> None:
        self.function = function
        self.names: dict[str, Any] = {}
        self.depth = depth
        self.returns: list[Any] = []
        self.markers: set[Marker] = set()
        """Values that are gone only inside this very body: a call of it computes them again."""


@dataclass(frozen=True)
class Moment:
    """When and on which arms of the branches an access came first."""

    number: int
    arms: tuple[tuple[int, bool], ...]
    text: str

    def before(self, other: Moment) -> bool:
        """Whether one thread can come from here to ``other``."""
        taken = dict(self.arms)
        return self.number < other.number and all(taken.get(b, arm) == arm for b, arm in other.arms)


class Effects:
    """What the walk has seen so far; the base of the walk over statements and expressions."""

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
        self.moments: dict[Access, Moment] = {}
        self.arms: tuple[tuple[int, bool], ...] = ()
        self.preserved: tuple[tuple[frozenset[Access], str], ...] = ()
        self.harmless: set[tuple[Access, Access, str | None]] = set()
        self.uses: dict[Marker, Site] = {}
        """The first statement whose adjoint uses a local value that it does not have."""
        self.found: dict[Fault, None] = {}
        self.carriers: dict[str, set[str]] = {}
        """For each path whose derivative goes on, the paths it goes to."""
        self.guards: frozenset[Access] = EMPTY
        """Reads that a ternary tests around what is evaluated now."""
        self.stored: set[Any] = set()
        """Components of array elements that have certainly been stored: path, element, text."""
        self.one_thread = False
        """Whether a test of the thread index lets few threads come here."""

    # -- what the parts of the walk ask of each other -----------------------------------------

    def block(self, body: Any, frame: Frame) -> bool:
        raise NotImplementedError

    def expression(self, node: Any, frame: Frame) -> Any:
        raise NotImplementedError

    def call(self, node: cst.Call, frame: Frame) -> Any:
        raise NotImplementedError

    def value(self, node: Any, frame: Frame) -> Value:
        return value_of(self.expression(node, frame))

    def step(self) -> None:
        self.steps += 1
        if self.steps > _MAX_STEPS or len(self.needs) > 50 * _MAX_NEEDS:
            raise BudgetError

    # -- effects -------------------------------------------------------------------------------

    def read(self, ref: ArrayRef, dims: tuple[Dimension, ...], frame: Frame, node: Any) -> Value:
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
            struct=ref.struct,
        )

    def happened(self, access: Access, place: Any, frame: Frame) -> None:
        """Remember when an access came first; ``place`` is the element as written, if it has a name."""
        if access not in self.moments:
            regular = all(d.terms is not None for d in access.dims)
            text = "" if regular or place is None else frame.function.module.source.code(place)
            self.moments[access] = Moment(len(self.moments), self.arms, text)

    def write(
        self,
        kind: AccessKind,
        ref: ArrayRef,
        dims: tuple[Dimension, ...],
        value: Value,
        frame: Frame,
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
            if not isinstance(need.read, Marker):
                self.needs.add(Need(need.read, need.given, ref.path))
        self.flows.setdefault(ref.path, set()).update(value.active_paths)
        for path in value.active_paths:
            self.carriers.setdefault(path, set()).add(ref.path)
        self._commit(pending, value, ref, access)
        if component and place is not None:
            target = (ref.path, dims, frame.function.module.source.code(place))
            self._stored_part(ref, target, value, access, node)
            if kind is AccessKind.STORE:
                self._updated_component(ref, dims, value, access, own=target in self.stored)
                if not self.condition:
                    self.stored.add(target)
        if kind is AccessKind.STORE and not component:
            self._multiplied(ref, dims, value, frame, node)
            self._raced(ref, dims, value, access)

    # -- faults --------------------------------------------------------------------------------

    def noticed(self, needs: frozenset[Pending], frame: Frame, node: Any) -> None:
        """Remember the first statement that needs a value which the adjoint does not have."""
        for pending in needs:
            if isinstance(pending.read, Marker) and pending.read not in self.uses:
                self.uses[pending.read] = Site(frame.function.module.source, node)

    def _commit(self, pending: frozenset[Pending], value: Value, ref: ArrayRef, write: Access) -> None:
        """What was computed leaves the kernel: faults that it carries along count from now on."""
        markers = [(p.read, p.given) for p in pending if isinstance(p.read, Marker)]
        order = {marker: number for number, marker in enumerate(self.uses)}
        markers.sort(key=lambda m: (order.get(m[0], len(order)), m[0].path, sorted(m[1])))
        for marker, given in markers:
            site = self.uses.setdefault(marker, write.site)
            if marker.fault in (FaultKind.CLAIMED, FaultKind.BREAK):
                site = marker.site
            self.fault(marker.fault, marker.path, site, marker.site, given, ref.path)
        for taint in sorted(value.taints, key=lambda t: (t.number, t.kind, sorted(t.given))):
            if taint.kind is FaultKind.STEPS and value.active_paths & taint.given:
                continue  # ``x - floor(x)``: a derivative passes beside it
            self.fault(
                taint.kind, taint.name, taint.site, taint.origin, taint.given, ref.path, taint.versions
            )
        for risk in sorted(value.risks, key=lambda r: (r.number, r.operation, sorted(r.given))):
            if risk.alone:
                self.fault(FaultKind.SINGULAR, risk.operation, risk.site, risk.site, risk.given, ref.path)

    def fault(
        self,
        kind: FaultKind,
        name: str,
        site: Site,
        origin: Site,
        given: frozenset[str],
        output: str,
        versions: str = "",
    ) -> None:
        if given:
            self.found[Fault(kind, name, site, origin, given, output, versions)] = None

    def _stored_part(self, ref: ArrayRef, target: Any, value: Value, write: Access, node: Any) -> None:
        """``a[i].x = e`` and ``a[i].x += e``: no adjoint passed through these in older versions."""
        code = target[2]
        versions = "<1.14"
        if isinstance(node, cst.AugAssign):
            # Adding to a component by number: no such thing before 1.15, except in matrices
            versions = (
                ">=1.15,<1.18" if code.endswith("]") and write.kind is AccessKind.ACCUMULATE else "<1.18"
            )
        self.fault(
            FaultKind.ELEMENT_PART, code, write.site, write.site, value.active_paths, ref.path, versions
        )

    def _updated_component(
        self, ref: ArrayRef, dims: tuple[Dimension, ...], value: Value, write: Access, *, own: bool
    ) -> None:
        # ``a[i][0] = a[i][0] * …``: the element is overwritten before its adjoint reads it. What the
        # kernel itself has stored there was computed again by older versions.
        needs = {p.given for p in value.needs if p.read.path == ref.path and p.read.dims == dims}
        versions = ">=1.18" if own else ">=1.14"
        if needs:
            given = EMPTY.union(*needs)
            self.fault(FaultKind.UPDATE, ref.path, write.site, write.site, given, ref.path, versions)

    def _raced(self, ref: ArrayRef, dims: tuple[Dimension, ...], value: Value, write: Access) -> None:
        """One element, and a different value from every thread."""
        if self.one_thread or self.condition or ref.index_depends:
            return
        if any(d.terms is None for d in dims):
            return
        own = _threads(dims)
        different = {a.path for a in value.active if a.path != ref.path and _threads(a.dims) - own}
        if different:
            name = ref.path
            self.fault(FaultKind.RACE, name, write.site, write.site, frozenset(different), ref.path)

    def read_of_others(self) -> None:
        """Elements that one thread reads and another one changes: what was read is not there any more."""
        for write in list(self.writes):
            if write.partial and not write.dims:
                continue
            for read in list(self.reads):
                if read.path != write.path or read.path not in self.carriers:
                    continue
                if write.kind is AccessKind.STORE:
                    meets = _next_to(read.dims, write.dims)
                else:
                    meets = read.dims == write.dims and not _threads(write.dims)
                    meets = meets and self.happened_before(write, read)
                if meets:
                    given = frozenset((read.path,)) | frozenset(self.flows.get(read.path, ()))
                    for output in sorted(self.carriers[read.path]):
                        self.fault(FaultKind.NEIGHBOUR, write.path, write.site, read.site, given, output)

    def happened_before(self, write: Access, read: Access) -> bool:
        first, second = self.moments.get(write), self.moments.get(read)
        return first is not None and second is not None and first.before(second)

    # -- in-place updates ----------------------------------------------------------------------

    def _multiplied(
        self, ref: ArrayRef, dims: tuple[Dimension, ...], value: Value, frame: Frame, node: Any
    ) -> None:
        # ``a[i] = a[i] * b[i]`` in any spelling, ``a *= b`` included
        own = [others for access, others in value.factors if access.path == ref.path and access.dims == dims]
        factors: frozenset[str] = EMPTY.union(*own) - {ref.path}
        if factors:
            site = Site(frame.function.module.source, node)
            self.multiplies[InPlaceMultiply(ref.path, factors, site)] = None

    def _stays_the_same(self, access: Access, value: Value, frame: Frame) -> None:
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

    def _spoils(self, write: Access, moment: Moment, need: Need) -> bool:
        read = self.moments.get(need.read)
        return (
            read is not None
            and need.read.path == write.path
            and read.before(moment)
            and same_element(need.read, read, write, moment)
            and (need.read, write, need.output) not in self.harmless
            and (need.read, write, None) not in self.harmless
        )


def value_of(entry: Any) -> Value:
    """The number an entry stands for when it is used as one."""
    if isinstance(entry, Value):
        return entry
    if isinstance(entry, TupleValue):
        return value_of(entry.items[0]) if entry.items else CONSTANT
    if isinstance(entry, LocalStruct):
        values = [value_of(v) for v in entry.fields.values()]
        return domain.linear(*values) if values else CONSTANT
    return CONSTANT


def same_element(read: Access, first: Moment, write: Access, second: Moment) -> bool:
    """Whether a read and a write of one thread certainly meet."""
    if not read.dims or read.dims != write.dims:
        return False
    return all(d.terms is not None for d in read.dims) or (first.text == second.text != "")


def spelled_path(node: Any) -> str:
    """``a.b.c`` of a chain of names; ``.b.c`` where the chain hangs on something else."""
    if isinstance(node, cst.Attribute):
        return f"{spelled_path(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _is_thread(symbol: str) -> bool:
    return symbol.startswith("tid:")


def _threads(dims: tuple[Dimension, ...]) -> set[str]:
    """The numbers of a thread that an index is made of."""
    return {s for d in dims for m, _ in d.terms or () for s in m if _is_thread(s)}


def _next_to(read: tuple[Dimension, ...], write: tuple[Dimension, ...]) -> bool:
    """Whether a read is that of a neighbour: the written index with one or two added to it.

    Larger distances are those between the parts of one array, as a rule.
    """
    if len(read) != len(write) or read == write:
        return False
    for one, other in zip(read, write, strict=True):
        if one == other and one.terms is not None:
            continue
        if one.terms is None or other.terms is None:
            return False
        a, b = dict(one.terms), dict(other.terms)
        distance = abs(a.pop((), 0) - b.pop((), 0))
        if (
            a != b
            or distance > 2
            or not any(len(m) == 1 and _is_thread(m[0]) and c in (1, -1) for m, c in a.items())
        ):
            return False
    return True
