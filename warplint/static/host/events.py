"""What the host side did to arrays: the ordered record a graph is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from warplint.static.host.values import Buffer, Carried, Tape, View, base_of
from warplint.static.kernels.summary import (
    Access,
    AccessKind,
    Dimension,
    KernelSummary,
    Need,
    Parameter,
    Site,
    overlaps,
)

__all__ = [
    "Backward",
    "Binding",
    "Event",
    "Mutation",
    "Recording",
    "copy_effect",
    "elementwise_effect",
    "library_effect",
    "may_touch",
    "reset_effect",
    "view_effect",
]

ONE_THREAD = "<one thread>"
"""Among the arguments of a launch: nothing happens at the same time."""
ALL_FIELDS = "<all fields>"
"""Among the arguments of a launch, below a struct's name: every number in it is known."""
THREAD = Dimension(((("tid:0",), 1),))


@dataclass(frozen=True)
class Binding:
    """An array bound to a path of a kernel in one launch."""

    array: Buffer | View
    text: str
    """The argument as written at the call."""
    rebound: Site | None = None
    """The statement that gave this name to an object that already had another one, if that is all
    it does (``a, b = b, a``)."""
    slot: tuple[Any, Any] | None = None
    """Container and key the argument was taken from, if it was taken from one."""

    @property
    def buffer(self) -> Buffer:
        base = base_of(self.array)
        assert base is not None
        return base

    @property
    def requires_grad(self) -> bool | None:
        if isinstance(self.array, View) and self.array.requires_grad is not None:
            return self.array.requires_grad
        return self.buffer.requires_grad

    @property
    def region(self) -> tuple[int, int] | None:
        return self.array.region if isinstance(self.array, View) else None

    @property
    def certain(self) -> bool:
        return not isinstance(self.array, View) or self.array.certain

    @property
    def differentiable(self) -> bool:
        element = self.array.element if isinstance(self.array, View) else self.buffer.element
        return element != "int"


@dataclass(eq=False)
class Event:
    """One operation on arrays while a tape was recording."""

    number: int
    kind: str
    """launch, copy, reset or library."""
    effect: KernelSummary
    bindings: Mapping[str, Binding]
    arguments: Mapping[str, Any]
    site: Site
    statement: Site
    call_path: tuple[Site, ...] = ()
    turns: tuple[int, ...] = ()
    guards: Mapping[int, int] = field(default_factory=dict)
    recorded: bool = True
    beside: bool = False
    """Not an operation of this tape: it came after the block, or went through host memory."""
    other_tape: bool = False
    """Such an operation, while another tape was recording."""
    host: Mapping[str, Carried] = field(default_factory=dict)
    """Arguments that the host made of an array's values."""

    @property
    def label(self) -> str:
        return self.effect.name

    def compatible(self, other: Event) -> bool:
        """Whether both can happen in one run (they are not in opposite arms of a branch)."""
        return all(other.guards.get(branch, arm) == arm for branch, arm in self.guards.items())


@dataclass(frozen=True)
class Backward:
    """A call of ``tape.backward``. ``objective`` is None if the seeds are not known."""

    site: Site
    objective: tuple[Buffer, ...] | None
    guards: Mapping[int, int] = field(default_factory=dict)
    bare: bool = False
    """Called without a loss and without gradients, and nothing was seeded before."""


@dataclass(frozen=True, eq=False)
class Mutation:
    """A struct or a list of arguments that a recorded launch holds is given another array."""

    event: Event
    """The launch."""
    path: str
    """The parameter, or the field of a struct parameter, that leads to another array now."""
    site: Site
    statement: Site
    text: str
    """What is assigned to, as written."""
    guards: Mapping[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class Recording:
    """What one tape recorded between its (re-)entry and its backward pass."""

    tape: Tape
    site: Site
    events: list[Event] = field(default_factory=list)
    backwards: list[Backward] = field(default_factory=list)
    call_path: tuple[Site, ...] = ()
    changes: list[Event] = field(default_factory=list)
    """Writes beside the tape before its backward pass: after the block, or through host memory."""
    mutations: list[Mutation] = field(default_factory=list)
    """Arguments of recorded launches that the host has changed since."""
    prelude: list[Event] = field(default_factory=list)
    """What ran before, while no tape was recording."""
    custom: bool = False
    """It holds adjoints that the host wrote itself (``tape.record_func``)."""
    closed: bool = False
    """The tape was reset: nothing of this is left for a backward pass."""


def may_touch(first: Event, read: Access, second: Event, write: Access) -> bool:
    """Whether an access of one event may meet an access of another, as far as can be told."""
    a, b = first.bindings.get(read.path), second.bindings.get(write.path)
    if a is None or b is None or a.buffer is not b.buffer:
        return False
    if not (a.certain and b.certain):
        return False
    if a.region and b.region:
        if a.region[1] <= b.region[0] or b.region[1] <= a.region[0]:
            return False
        if a.region != b.region:
            return True
    elif a.region or b.region:
        return True
    return overlaps(read.dims, first.arguments, write.dims, second.arguments)


def copy_effect(name: str, site: Site) -> KernelSummary:
    """A copy as a kernel: reads ``source`` linearly, overwrites ``destination``."""
    return KernelSummary(
        name,
        site.module.display,
        site,
        (Parameter("destination", "array"), Parameter("source", "array")),
        reads=(Access("source", AccessKind.READ, (), site),),
        writes=(Access("destination", AccessKind.STORE, (), site),),
        flows={"destination": frozenset({"source"})},
    )


def reset_effect(name: str, site: Site) -> KernelSummary:
    """``zero_``, ``fill_`` and the like: an overwrite the tape does not see."""
    write = Access("destination", AccessKind.STORE, (), site)
    return KernelSummary(
        name, site.module.display, site, (Parameter("destination", "array"),), writes=(write,)
    )


def view_effect(site: Site) -> KernelSummary:
    """An in-place change of host memory (numpy, torch) that an array shares."""
    return replace(reset_effect("a view of its memory", site), opaque=True)


def elementwise_effect(name: str, site: Site, inputs: int, *, linear: bool) -> KernelSummary:
    """``wp.map`` and array operators: ``out`` from ``in0 …``, element by element."""
    paths = [f"in{k}" for k in range(inputs)]
    reads = tuple(Access(p, AccessKind.READ, (THREAD,), site) for p in paths)
    given = frozenset(paths)
    needs = frozenset() if linear else frozenset(Need(r, given, "out") for r in reads)
    return KernelSummary(
        name,
        site.module.display,
        site,
        tuple(Parameter(p, "array") for p in (*paths, "out")),
        reads=reads,
        writes=(Access("out", AccessKind.STORE, (THREAD,), site),),
        needs=needs,
        flows={"out": given},
    )


def library_effect(name: str, site: Site, reads: tuple[str, ...], writes: tuple[str, ...]) -> KernelSummary:
    """A simulation step of a library: nonlinear in all it reads, overwrites all it writes."""
    read = tuple(Access(p, AccessKind.READ, (), site) for p in reads)
    given = frozenset(reads)
    return KernelSummary(
        name,
        site.module.display,
        site,
        tuple(Parameter(p, "array") for p in (*reads, *writes)),
        reads=read,
        writes=tuple(Access(p, AccessKind.STORE, (), site) for p in writes),
        needs=frozenset(Need(r, given, p) for r in read for p in writes),
        flows=dict.fromkeys(writes, given),
    )
