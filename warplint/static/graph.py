"""The dataflow graph of one tape scope, and the questions rules ask of it.

What the graph is made of, and where on it a derivative matters, is in ``activity.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from warplint.static.activity import Activity, Operation, Version
from warplint.static.host.events import ALL_FIELDS, ONE_THREAD, Binding, Event, Mutation, Recording, may_touch
from warplint.static.host.values import Buffer
from warplint.static.kernels.summary import (
    Access,
    AccessKind,
    Fault,
    FaultKind,
    InPlaceMultiply,
    InPlaceUpdate,
    Need,
)
from warplint.versions import Version as WarpVersion
from warplint.versions import concern

__all__ = ["Cut", "Hazard", "Operation", "Reset", "ScopeGraph", "Version"]


@dataclass(frozen=True)
class Hazard:
    """A value a backward step needs, and the operation that destroys it first."""

    buffer: Buffer
    reader: Event
    need: Need
    read: Binding
    writer: Event
    write: Access
    written: Binding


@dataclass(frozen=True)
class Reset:
    """An unrecorded overwrite that leaves the adjoint of the old contents in place."""

    buffer: Buffer
    event: Event
    written: Binding
    earlier: Event
    """The recorded operation whose adjoint is fed with what belongs to later contents."""
    later: Event | None


@dataclass(frozen=True)
class Cut:
    """An array without gradient on the way from a parameter to the objective."""

    buffer: Buffer
    writer: Event
    written: Binding
    source: Binding


class ScopeGraph(Activity):
    """What rules ask of one recording: values that are gone, paths that are cut, kernels at fault."""

    def __init__(self, recording: Recording, warp: WarpVersion | None = None) -> None:
        super().__init__(recording, warp)
        self._preserving.update(second for _, _, second in self.repeated)

    @cached_property
    def needed(self) -> list[tuple[int, Need]]:
        """The values backward uses, in the order in which they were read."""
        found: list[tuple[int, Need]] = []
        for index, event in enumerate(self.events):
            if not event.recorded or not event.effect.backward:
                continue
            seen: set[tuple[str, Any]] = set()
            for need in event.effect.ordered_needs:
                key = (need.read.path, need.read.dims)
                if key in seen or need.read.path not in event.bindings:
                    continue
                if not self._active_output(index, need.output):
                    continue
                if any(self._active_input(index, g) for g in need.given):
                    seen.add(key)
                    found.append((index, need))
        return found

    @cached_property
    def hazards(self) -> list[Hazard]:
        """Each needed value with the first operation that overwrites it."""
        writes: dict[int, list[tuple[int, Access]]] = {}
        for index, event in enumerate(self.events):
            for access in event.effect.writes:
                binding = event.bindings.get(access.path)
                if binding is not None:
                    writes.setdefault(binding.buffer.number, []).append((index, access))
        found: list[Hazard] = []
        for index, need in self.needed:
            reader = self.events[index]
            read = reader.bindings[need.read.path]
            first = self._first_overwrite(index, need, writes.get(read.buffer.number, []))
            if first is None:
                first = self._changed_beside(reader, need)
            elif first[0] is reader and first[1].path == need.read.path:
                continue  # The kernel overwrites its own input: a matter of the kernel, not of the host.
            if first is not None:
                writer, access = first
                written = writer.bindings[access.path]
                found.append(Hazard(read.buffer, reader, need, read, writer, access, written))
        return found

    def _first_overwrite(
        self, index: int, need: Need, writes: list[tuple[int, Access]]
    ) -> tuple[Event, Access] | None:
        reader = self.events[index]
        for later, access in writes:
            if later < index:
                continue
            writer = self.events[later]
            if writer in self._preserving or not reader.compatible(writer):
                continue
            if may_touch(reader, need.read, writer, access):
                return writer, access
        return None

    def _changed_beside(self, reader: Event, need: Need) -> tuple[Event, Access] | None:
        """The first write beside the tape that meets a value before its backward pass."""
        for writer in self.recording.changes:
            if writer.number < reader.number or not reader.compatible(writer):
                continue
            arms = writer.guards.items()
            if not any(all(b.guards.get(k, a) == a for k, a in arms) for b in self.recording.backwards):
                continue
            for access in writer.effect.writes:
                if may_touch(reader, need.read, writer, access):
                    return writer, access
        return None

    @cached_property
    def mutations(self) -> list[Mutation]:
        """Changed arguments of launches whose backward step uses them."""
        indices = {event: index for index, event in enumerate(self.events)}
        needed = {(index, need.read.path) for index, need in self.needed}
        found: list[Mutation] = []
        for mutation in self.recording.mutations:
            index = indices.get(mutation.event)
            arms = mutation.guards.items()
            if index is None or not any(
                all(b.guards.get(k, a) == a for k, a in arms) for b in self.recording.backwards
            ):
                continue
            effect = mutation.event.effect
            flows = effect.flows.items()
            paths = [
                p for p in mutation.event.bindings if p == mutation.path or p.startswith(f"{mutation.path}.")
            ]
            if effect.backward and any(
                (index, p) in needed
                or self._active_output(index, p)
                or any(p in sources and self._active_output(index, out) for out, sources in flows)
                for p in paths
            ):
                found.append(mutation)
        return found

    def follows_objective(self, event: Event) -> bool:
        """Whether an operation on the tape comes after everything that made the objective."""
        return self._objective_made is not None and event.number > self._objective_made

    @cached_property
    def _objective_made(self) -> int | None:
        if not self.objective_known:
            return None
        seeded = {b.number for back in self.recording.backwards for b in back.objective or ()}
        makers = [
            event.number
            for event in self.events
            if event.recorded
            and any(
                event.bindings[a.path].buffer.number in seeded
                for a in event.effect.writes
                if a.path in event.bindings
            )
        ]
        return max(makers, default=None)

    @cached_property
    def resets(self) -> list[Reset]:
        """Unrecorded overwrites of arrays whose old and new contents both carry a derivative."""
        found: list[Reset] = []
        for index, event in enumerate(self.events):
            if event.recorded or event.kind not in ("reset", "copy") or event in self._preserving:
                continue
            binding = event.bindings["destination"]
            if binding.requires_grad is False or not binding.differentiable or not binding.certain:
                continue
            version = self._after[index]["destination"]
            later = self._adjoint_left(index, version, binding.buffer)
            if later is None:
                continue
            earlier = self._recorded_write(index, event, binding)
            if earlier is not None:
                found.append(Reset(binding.buffer, event, binding, earlier, later))
        return found

    def _recorded_write(self, index: int, event: Event, binding: Binding) -> Event | None:
        """The last recorded operation before ``index`` that wrote a derivative into the buffer."""
        for earlier in range(index - 1, -1, -1):
            other = self.events[earlier]
            if not other.recorded or not other.compatible(event):
                continue
            for path, version in self._after[earlier].items():
                if other.bindings[path].buffer is not binding.buffer or not _regions_meet(
                    other.bindings[path], binding
                ):
                    continue
                if version in self.varied and version in self._created_by_flow:
                    return other
        return None

    def _adjoint_left(self, index: int, version: Version, buffer: Buffer) -> Event | None:
        """The operation whose adjoint lands on the contents a reset made, if there is one."""
        for later in range(index + 1, len(self.events)):
            event = self.events[later]
            touched = False
            for path, binding in event.bindings.items():
                if binding.buffer is not buffer:
                    continue
                flows = any(path in sources for sources in event.effect.flows.values())
                if (
                    flows
                    and event.recorded
                    and any(
                        path in sources and self._active_output(later, out)
                        for out, sources in event.effect.flows.items()
                    )
                ):
                    return event
                accesses = event.effect.writes_of(path)
                touched = touched or any(a.kind is not AccessKind.ACCUMULATE for a in accesses)
            if touched:
                return None  # a recorded store clears the adjoint; an unrecorded one is a reset of its own
        return None

    @cached_property
    def retained(self) -> list[tuple[Buffer, Event, Event]]:
        """Arrays that keep their adjoint, with a recorded write and the store that overwrites it."""
        first: dict[int, Event] = {}
        found: dict[int, tuple[Buffer, Event, Event]] = {}
        for index, event in enumerate(self.events):
            if not event.recorded:
                continue
            for path, version in self._after[index].items():
                binding = event.bindings[path]
                buffer = binding.buffer
                if not buffer.retains or buffer.number in found:
                    continue
                earlier = first.get(buffer.number)
                stores = any(a.kind is not AccessKind.ACCUMULATE for a in event.effect.writes_of(path))
                if earlier is not None and stores and event.compatible(earlier):
                    meets = any(
                        b.buffer is buffer and _regions_meet(b, binding) for b in earlier.bindings.values()
                    )
                    if meets and version in self.useful:
                        found[buffer.number] = (buffer, earlier, event)
                elif version in self.varied:
                    first.setdefault(buffer.number, event)
        return list(found.values())

    @cached_property
    def repeated(self) -> list[tuple[Binding, Event, Event]]:
        """Launches that are recorded again with nothing changed in between: output, first and second."""
        written: dict[int, int] = {}
        latest: dict[Any, tuple[int, Event]] = {}
        found: list[tuple[Binding, Event, Event]] = []
        for index, event in enumerate(self.events):
            given = _repeatable(event)
            if given is not None:
                position, earlier = latest.get(given, (-1, event))
                numbers = [b.buffer.number for b in event.bindings.values()]
                untouched = all(written.get(n, -1) <= position for n in numbers)
                if earlier is not event and untouched and event.compatible(earlier):
                    outputs = sorted({a.path for a in event.effect.writes} & event.bindings.keys())
                    found += [(event.bindings[outputs[0]], earlier, event)] if outputs else []
                latest[given] = (index, event)
            for access in event.effect.writes:
                if access.path in event.bindings:
                    written[event.bindings[access.path].buffer.number] = index
        return found

    @cached_property
    def iterations(self) -> list[tuple[Event, int]]:
        """Launches that a loop repeats on one state, with nothing else changing, and its turns."""
        groups: dict[Any, list[Event]] = {}
        for index, event in enumerate(self.events):
            if event.kind == "launch" and event.recorded and event.turns and self.feeds_objective(index):
                key = (event.site, event.call_path, event.turns[:-1])
                groups.setdefault(key, []).append(event)
        found = [events for events in groups.values() if _iterates(events)]
        return [(events[0], events[-1].turns[-1] + 1) for events in found]

    @cached_property
    def cuts(self) -> list[Cut]:
        """Arrays born without gradient between a parameter and the objective."""
        if not self.objective_known:
            return []
        found: list[Cut] = []
        seen: set[int] = set()
        for index, event in enumerate(self.events):
            if not event.effect.backward or not (event.recorded or event.kind == "copy"):
                continue
            for path, version in self._after[index].items():
                binding = event.bindings[path]
                buffer = binding.buffer
                if buffer.number in seen or buffer.requires_grad is not False or buffer.element != "float":
                    continue
                if version in self.objectives:
                    continue
                if binding.array is not buffer or version not in self._ideal_useful:
                    continue
                for source in sorted(event.effect.flows.get(path, ())):
                    origin = self._before[index].get(source)
                    if origin in self._ideal_varied and event.bindings[source].differentiable:
                        seen.add(buffer.number)
                        found.append(Cut(buffer, event, binding, event.bindings[source]))
                        break
        return found

    @cached_property
    def multiplies(self) -> list[tuple[Event, InPlaceMultiply]]:
        """In-place products in recorded kernels whose other factor carries a derivative."""
        found: list[tuple[Event, InPlaceMultiply]] = []
        for index, event in enumerate(self.events):
            if not event.recorded or not event.effect.backward:
                continue
            for item in event.effect.multiplies:
                if self._active_output(index, item.path) and any(
                    self._active_input(index, p) for p in item.factors
                ):
                    found.append((event, item))
        return found

    @cached_property
    def updates(self) -> list[tuple[Event, InPlaceUpdate]]:
        """In-place updates in recorded kernels whose old values the kernel's own adjoint needs."""
        found: list[tuple[Event, InPlaceUpdate]] = []
        for index, event in enumerate(self.events):
            if not event.recorded or not event.effect.backward:
                continue
            for item in event.effect.updates:
                if item.path in event.bindings and any(
                    self._active_output(index, need.output)
                    and any(self._active_input(index, g) for g in need.given)
                    for need in item.needs
                ):
                    found.append((event, item))
        return found

    @cached_property
    def faults(self) -> list[tuple[Event, Fault]]:
        """What makes the own adjoint of a recorded kernel wrong, where a derivative passes through."""
        found: list[tuple[Event, Fault]] = []
        for index, event in enumerate(self.events):
            if not event.recorded or not event.effect.backward:
                continue
            for item in event.effect.faults:
                if not concern(item.versions, self.warp):
                    continue
                if item.kind in _BETWEEN_THREADS and ONE_THREAD in event.arguments:
                    continue
                if self._active_output(index, item.output) and any(
                    self._active_input(index, path) for path in item.given
                ):
                    found.append((event, item))
        return found


_BETWEEN_THREADS = frozenset({FaultKind.NEIGHBOUR, FaultKind.RACE})


def _regions_meet(one: Binding, two: Binding) -> bool:
    if not (one.certain and two.certain):
        return False
    if one.region and two.region:
        return one.region[0] < two.region[1] and two.region[0] < one.region[1]
    return True


def _repeatable(event: Event) -> Any:
    """What a launch was given, if that is all known and it only stores, into other arrays than it reads."""
    if event.kind != "launch" or not event.recorded:
        return None
    effect, bindings = event.effect, event.bindings
    for p in effect.parameters:
        known = {"array": bindings, "struct": {k.removesuffix(f".{ALL_FIELDS}") for k in event.arguments}}
        if p.name not in known.get(p.kind, event.arguments):
            return None
    stored = {bindings[a.path].buffer for a in effect.writes if a.path in bindings}
    read = {bindings[a.path].buffer for a in effect.reads if a.path in bindings}
    if stored & read or any(a.kind is not AccessKind.STORE for a in effect.writes):
        return None
    if not all(b.certain for b in bindings.values()):
        return None
    arrays = tuple((path, b.buffer.number, b.region) for path, b in sorted(bindings.items()))
    return (id(effect), arrays, tuple(sorted(event.arguments.items())))


def _iterates(events: list[Event]) -> bool:
    """Whether each launch goes on with what the one before wrote, and is given the same otherwise."""
    if len({e.turns for e in events}) < 2:
        return False
    for one, two in pairwise(events):
        written = {one.bindings[a.path].buffer for a in one.effect.writes if a.path in one.bindings}
        state = {p for p, b in two.bindings.items() if b.buffer in written and two.effect.reads_of(p)}
        made = {a.path for a in two.effect.writes}
        rest = [p for p in two.bindings if p not in state | made]
        if not state or two.arguments != one.arguments or two.effect is not one.effect:
            return False
        if any(p not in one.bindings or one.bindings[p].buffer is not two.bindings[p].buffer for p in rest):
            return False
    return True
