"""Versions of buffers, the operations between them, and where a derivative matters.

Nodes are *versions* of buffers (one per write) and operations. A derivative can travel along two
kinds of edges between versions: from what an operation read to what it wrote, and from a version to
the next one when a write left part of it standing. On this graph *varied* means reachable from
something that requires grad, *useful* means that the objective is reachable; a derivative matters
where both hold (activity analysis).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx

from warplint.static.host.events import Binding, Event, Recording
from warplint.static.host.values import Buffer
from warplint.static.kernels.summary import Access, AccessKind, IndexClass
from warplint.versions import Version as WarpVersion

__all__ = ["Activity", "Operation", "Version"]


@dataclass(frozen=True)
class Version:
    """The contents of a buffer between two writes."""

    buffer: int
    number: int

    def __str__(self) -> str:
        return f"b{self.buffer}.{self.number}"


Operation = tuple[Event, dict[str, Version], dict[str, Version]]
"""An event with the versions it read and made, by path."""


class Activity:
    """Versions of buffers, operations between them, and where a derivative matters, of one recording."""

    def __init__(self, recording: Recording, warp: WarpVersion | None = None) -> None:
        self.recording = recording
        self.warp = warp
        """The version of Warp that the program runs with, where that is known."""
        self.events = recording.events
        self.real: Any = nx.DiGraph()
        """Derivative edges that exist, given ``requires_grad`` and what was recorded."""
        self.ideal: Any = nx.DiGraph()
        """The edges there would be if every array had a gradient."""
        self.wished: Any = nx.DiGraph()
        """The edges there would be if, besides, everything was recorded and had backward code."""
        self.buffers: dict[int, Buffer] = {}
        self._current: dict[int, int] = {}
        self._before: list[dict[str, Version]] = []
        self._after: list[dict[str, Version]] = []
        self._created_by_flow: set[Version] = set()
        self._constants: set[Version] = set()
        self._contents: dict[Version, Version] = {}
        """Versions that a whole copy made, with the one they are equal to."""
        self._preserving: set[Event] = set()
        self._kept: set[tuple[Version, Version]] = set()
        """Versions of which a part is left in the next one."""
        for event in self.events:
            self._add(event)

    # -- construction -------------------------------------------------------------------------

    def _version(self, buffer: Buffer) -> Version:
        number = self._current.setdefault(buffer.number, 0)
        self.buffers[buffer.number] = buffer
        version = Version(buffer.number, number)
        if version not in self.real:
            self.real.add_node(version)
            self.wished.add_node(version)
            self.ideal.add_node(version)
        return version

    def _next(self, buffer: Buffer) -> Version:
        self._version(buffer)
        self._current[buffer.number] += 1
        return self._version(buffer)

    def _add(self, event: Event) -> None:
        effect, bindings = event.effect, event.bindings
        before = {path: self._version(b.buffer) for path, b in bindings.items()}
        fresh: dict[int, Version] = {}
        after: dict[str, Version] = {}
        for path in sorted({a.path for a in effect.writes} & bindings.keys()):
            binding = bindings[path]
            if binding.buffer.number not in fresh:
                fresh[binding.buffer.number] = self._next(binding.buffer)
            after[path] = version = fresh[binding.buffer.number]
            if event.kind == "reset" and event.label in _CONSTANT_RESETS and not binding.region:
                self._constants.add(version)
            accesses = effect.writes_of(path)
            if not any(_covers(event, binding, a) for a in accesses):
                self._connect(before[path], version, binding, binding, event, kept=True)
                self._kept.add((before[path], version))
        for path, sources in effect.flows.items():
            if path not in after:
                continue
            for source in sources:
                if source in before:
                    self._connect(before[source], after[path], bindings[source], bindings[path], event)
                    # a kernel may read what it has just written
                    if source in after and after[source] != after[path]:
                        self._connect(after[source], after[path], bindings[source], bindings[path], event)
        self._before.append(before)
        self._after.append(after)
        if event.kind == "copy" and all(b.array is b.buffer for b in bindings.values()):
            self._equate(event, before, after["destination"])

    def _equate(self, event: Event, before: dict[str, Version], made: Version) -> None:
        """After a copy of a whole array both hold the same; maybe they did before."""
        source, old = (self._contents.get(before[p], before[p]) for p in ("source", "destination"))
        self._contents[made] = source
        if source == old:
            self._preserving.add(event)

    def _connect(
        self, source: Version, target: Version, one: Binding, two: Binding, event: Event, kept: bool = False
    ) -> None:
        if not (one.differentiable and two.differentiable):
            return
        self.wished.add_edge(source, target)
        if not kept and not event.effect.backward:
            return
        if kept or event.recorded or event.kind == "copy":
            self.ideal.add_edge(source, target)
        carries = one.requires_grad is not False and two.requires_grad is not False
        if carries and (kept or event.recorded):
            self.real.add_edge(source, target)
            if not kept:
                self._created_by_flow.add(target)

    # -- activity -----------------------------------------------------------------------------

    @cached_property
    def objectives(self) -> set[Version]:
        """Last versions of what ``backward`` was seeded with; of everything if that is unknown."""
        found: set[Version] = set()
        for backward in self.recording.backwards:
            buffers = backward.objective
            for number, last in self._current.items():
                buffer = self.buffers[number]
                if buffers is None or any(b is buffer for b in buffers):
                    found.add(Version(number, last))
        return found

    @property
    def objective_known(self) -> bool:
        return all(b.objective is not None for b in self.recording.backwards)

    @cached_property
    def varied(self) -> set[Version]:
        """Versions a derivative of something that requires grad reaches."""
        sources = {
            v
            for v in self.real
            if v not in self._created_by_flow
            and v not in self._constants
            and self.buffers[v.buffer].requires_grad is not False
            and self.buffers[v.buffer].element != "int"
        }
        return _reach(self.real, sources)

    @cached_property
    def useful(self) -> set[Version]:
        """Versions from which the objective is reached."""
        return _reach(self.real.reverse(copy=False), self.objectives)

    @cached_property
    def _ideal_varied(self) -> set[Version]:
        written = {v for versions in self._after for v in versions.values()}
        sources = {v for v in self.ideal if v not in written and self.buffers[v.buffer].requires_grad is True}
        return _reach(self.ideal, sources)

    @cached_property
    def _ideal_useful(self) -> set[Version]:
        return _reach(self.ideal.reverse(copy=False), self.objectives)

    @cached_property
    def _written(self) -> set[Version]:
        return {v for versions in self._after for v in versions.values()}

    @cached_property
    def wished_useful(self) -> set[Version]:
        """Versions from which the objective would be reached if nothing cut the way."""
        return _reach(self.wished.reverse(copy=False), self.objectives)

    @cached_property
    def wished_varied(self) -> set[Version]:
        """Versions that depend on an optimized array in any way."""
        sources = {
            v for v in self.wished if v not in self._written and self.buffers[v.buffer].requires_grad is True
        }
        return _reach(self.wished, sources)

    def passes(self, index: int) -> bool:
        """Whether a derivative of an optimized array would go through an event to the objective."""
        event = self.events[index]
        for path, version in self._after[index].items():
            if version not in self.wished_useful or not event.bindings[path].differentiable:
                continue
            for source in event.effect.flows.get(path, ()):
                origin = self._before[index].get(source)
                if origin in self.wished_varied and event.bindings[source].differentiable:
                    return True
        return False

    def feeds_objective(self, index: int) -> bool:
        """Whether an event writes something the objective depends on."""
        return any(v in self.wished_useful for v in self._after[index].values())

    def starts_useful(self, buffer: Buffer) -> bool:
        """Whether the objective depends on what a buffer held when the recording began."""
        return buffer.number in self.buffers and Version(buffer.number, 0) in self.wished_useful

    def ends_varied(self, buffer: Buffer) -> bool:
        """Whether the last contents of a buffer depend on an optimized array."""
        return Version(buffer.number, self._current.get(buffer.number, -1)) in self.wished_varied

    def becomes_varied(self, buffer: Buffer) -> bool:
        """Whether an operation of this recording gives a buffer contents that depend on one."""
        last = self._current.get(buffer.number, 0)
        return any(Version(buffer.number, n) in self.wished_varied for n in range(1, last + 1))

    def _active_input(self, index: int, path: str) -> bool:
        binding = self.events[index].bindings.get(path)
        version = self._before[index].get(path)
        if binding is None or binding.requires_grad is False or not binding.differentiable:
            return False
        after = self._after[index].get(path)
        return version in self.varied or after in self.varied

    def _active_output(self, index: int, path: str) -> bool:
        binding = self.events[index].bindings.get(path)
        if binding is None or binding.requires_grad is False or not binding.differentiable:
            return False
        return self._after[index].get(path) in self.useful

    def carries(self, index: int, path: str) -> bool:
        """Whether a derivative comes back through what an operation reads under a path."""
        return self._active_input(index, path) and any(
            path in sources and self._active_output(index, out)
            for out, sources in self.events[index].effect.flows.items()
        )

    # -- what is drawn ------------------------------------------------------------------------

    @property
    def operations(self) -> Iterator[Operation]:
        """The events with the versions they read and made, by path, in the order of the program."""
        yield from zip(self.events, self._before, self._after, strict=True)

    def versions_of(self, buffer: Buffer) -> int:
        """How many contents a buffer has had."""
        return self._current.get(buffer.number, 0) + 1

    def keeps(self, before: Version, after: Version) -> bool:
        """Whether part of one version is still there in the next one."""
        return (before, after) in self._kept

    def version_read(self, event: Event, path: str) -> Version | None:
        """What an event read under a path."""
        return next((before.get(path) for e, before, _ in self.operations if e is event), None)


_CONSTANT_RESETS = frozenset({"zero_()", "fill_()"})
"""What follows them is a constant: nobody optimizes a value that is set inside the tape."""


def _reach(graph: Any, sources: set[Version]) -> set[Version]:
    """Everything reachable from ``sources``, themselves included."""
    reached = set(sources)
    stack = list(sources)
    while stack:
        for successor in graph.successors(stack.pop()):
            if successor not in reached:
                reached.add(successor)
                stack.append(successor)
    return reached


def _covers(event: Event, binding: Binding, access: Access) -> bool:
    """Whether a write replaces the whole buffer."""
    if access.kind is AccessKind.ACCUMULATE or access.partial or binding.array is not binding.buffer:
        return False
    kinds = {d.kind for d in access.dims}
    if kinds <= {IndexClass.THREAD}:
        return True
    return kinds == {IndexClass.CONSTANT} and binding.buffer.shape == (1,)
