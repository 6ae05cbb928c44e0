"""Questions about what happens between the tape scopes of one entry: the training loop.

Replays the steps of :mod:`warplint.static.host.life` and remembers, for each gradient, whether it
holds what a backward pass left, whether that was read and whether the parameter was changed since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from warplint.static.host.events import Event, Recording, may_touch
from warplint.static.host.life import Step
from warplint.static.host.values import Buffer, Tape
from warplint.static.kernels.summary import Access, AccessKind

_Writes = dict[Buffer, list[tuple[Event, Access]]]
"""What a recording wrote to each array; no access where it was copied there as a whole."""

__all__ = ["EARLY", "EMPTIED", "VIEW", "Dead", "Kept", "Loops", "Replayed", "Stale", "Truncated"]

EARLY, EMPTIED, VIEW = "early", "emptied", "view"


@dataclass(frozen=True)
class Kept:
    """A backward pass that adds to what an earlier one left in a gradient."""

    buffer: Buffer
    backward: Step
    again: bool
    """The same recording was gone back over twice."""


@dataclass(frozen=True)
class Replayed:
    """A tape that is entered again with launches on it that a pass was over already."""

    tape: Tape
    enter: Step


@dataclass(frozen=True)
class Stale:
    """A gradient that was read, or whose view was used, when it was not there."""

    buffer: Buffer
    how: str
    step: Step
    """The read."""
    by: Step | None = None
    """What emptied the gradient, or the pass that comes too late."""


@dataclass(frozen=True)
class Truncated:
    """A tape that begins with the state an earlier one left, after that one's own backward pass."""

    state: Buffer
    parameter: Buffer
    backward: Step
    enter: Step


@dataclass(frozen=True)
class Dead:
    """A backward pass that nothing was given to begin with."""

    backward: Step
    last: Buffer | None
    """What the tape's last operation wrote."""


@dataclass
class _Gradient:
    """What is known of one buffer's gradient at a point of the program."""

    holds: Step | None = None
    """The pass that has left something in it."""
    used: bool = False
    changed: bool = False
    emptied: Step | None = None

    def held(self, step: Step) -> bool:
        """Whether it may hold something when ``step`` happens."""
        return self.holds is not None and step.compatible(self.holds)


@dataclass
class Loops:
    """What goes wrong around the tapes of one entry."""

    kept: list[Kept] = field(default_factory=list)
    replayed: list[Replayed] = field(default_factory=list)
    stale: list[Stale] = field(default_factory=list)
    truncated: list[Truncated] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)

    def __init__(self, steps: Sequence[Step]) -> None:
        self.kept, self.replayed, self.stale, self.truncated, self.dead = [], [], [], [], []
        self._windows: list[tuple[_Writes, dict[Buffer, int]]] = []
        """What earlier passes wrote, and the versions of the parameters they read."""
        self._versions: dict[Buffer, int] = {}
        self._entered: dict[Recording, Step] = {}
        self._gradients: dict[Buffer, _Gradient] = {}
        self._passed: dict[Tape, dict[Recording, Step]] = {}
        self._recorded: dict[Tape, list[Recording]] = {}
        self._open: dict[Tape, Recording] = {}
        """Recordings that were entered and not yet gone back over."""
        self._read_at_all = {step.buffer for step in steps if step.kind == "read"}
        self._ended: list[tuple[Step, Recording]] = []
        self.early: list[Stale] = []
        """Reads of gradients for which a pass is still to come."""
        for step in steps:
            getattr(self, "_" + step.kind)(step)
        self.stale.extend(self.early)
        self._find_left_out()

    def _gradient(self, buffer: Buffer) -> _Gradient:
        return self._gradients.setdefault(buffer, _Gradient())

    # -- tapes --------------------------------------------------------------------------------

    def _enter(self, step: Step) -> None:
        assert step.tape is not None
        assert step.recording is not None
        if self._passed.get(step.tape):
            self.replayed.append(Replayed(step.tape, step))
        recorded = self._recorded.setdefault(step.tape, [])
        if step.recording not in recorded:
            recorded.append(step.recording)
        self._open[step.tape] = step.recording
        self._entered.setdefault(step.recording, step)

    def _backward(self, step: Step) -> None:
        assert step.tape is not None
        recording = step.recording
        assert recording is not None
        self._find_dead(step, recording)
        for read in [r for r in self.early if r.buffer in parameters(recording)]:
            self.early.remove(read)
            self.stale.append(replace(read, by=step))
        passed = self._passed.setdefault(step.tape, {})
        again = recording in passed and step.compatible(passed[recording])
        objectives = [b.objective for b in recording.backwards]
        twice = again and len(objectives) > 1 and objectives.count(objectives[-1]) > 1
        for buffer in parameters(recording):
            gradient = self._gradient(buffer)
            if gradient.held(step) and ((gradient.used and gradient.changed) or twice):
                self.kept.append(Kept(buffer, step, twice and not gradient.changed))
            gradient.holds = step
            gradient.used = gradient.changed = False
            gradient.emptied = None
        for buffer in accumulators(recording):
            gradient = self._gradient(buffer)
            if gradient.held(step):
                self.kept.append(Kept(buffer, step, False))
            gradient.holds = step
        if not again:
            self._end_window(step, recording)
        passed[recording] = step
        self._open.pop(step.tape, None)

    def _find_dead(self, step: Step, recording: Recording) -> None:
        """Another tape's pass may have left the adjoints to go on with; without one there are none."""
        others = any(tape is not step.tape and passed for tape, passed in self._passed.items())
        events = [e for e in recording.events if e.recorded]
        graded = any(b.requires_grad is not False for e in events for b in e.bindings.values())
        if recording.backwards[-1].bare and graded and not others:
            last = events[-1]
            writes = [last.bindings[a.path] for a in last.effect.writes if a.path in last.bindings]
            self.dead.append(Dead(step, writes[-1].buffer if writes else None))

    def _end_window(self, step: Step, recording: Recording) -> None:
        entered = self._entered.get(recording, step)
        objectives = {b for back in recording.backwards for b in back.objective or ()}
        begun = [read for read in first_reads(recording) if read[0] not in objectives]
        versions = {b: self._versions.get(b, 0) for b in parameters(recording)}
        for written, earlier in self._windows:
            common = [
                b
                for b, version in versions.items()
                if earlier.get(b) == version and b not in written and b in self._read_at_all
            ]
            state = _carried(begun, written)
            if common and state:
                self.truncated.append(Truncated(state[0], common[0], step, entered))
                break
        self._windows = [*self._windows[-7:], (_written(recording), versions)]
        self._ended.append((step, recording))

    def _find_left_out(self) -> None:
        """Tapes that nobody goes back over, though a later one begins with what they left."""
        for step, recording in self._ended:
            begun, common = first_reads(recording), self._read_at_all.intersection(parameters(recording))
            for other, entered in self._entered.items():
                if other.backwards or other is recording:
                    continue
                written = _written(other)
                shared = [b for b in parameters(other) if b in common]
                state = _carried(begun, written)
                if shared and state:
                    self.truncated.append(Truncated(state[0], shared[0], step, entered))
                    break

    def _zero(self, step: Step) -> None:
        assert step.tape is not None
        for recording in self._recorded.get(step.tape, ()):
            for event in recording.events:
                for binding in event.bindings.values():
                    self._empty(binding.buffer, step)

    def _reset(self, step: Step) -> None:
        assert step.tape is not None
        self._zero(step)
        self._passed.pop(step.tape, None)
        self._recorded.pop(step.tape, None)
        self._open.pop(step.tape, None)

    def _adjoint(self, step: Step) -> None:
        """A manual adjoint launch: no tape, the host zeroes and reads the adjoint arrays itself."""
        buffer = step.buffer
        assert buffer is not None
        gradient = self._gradient(buffer)
        if gradient.held(step) and gradient.used:
            self.kept.append(Kept(buffer, step, False))
        gradient.holds, gradient.used, gradient.emptied = step, False, None

    def _forget(self, step: Step) -> None:
        self._gradients.clear()
        self._passed.clear()
        self._recorded.clear()
        self._open.clear()
        self._windows.clear()

    # -- gradients ----------------------------------------------------------------------------

    def _empty(self, buffer: Buffer, step: Step) -> None:
        gradient = self._gradient(buffer)
        if gradient.holds is not None:
            gradient.emptied = step
        gradient.holds = None

    def _clear(self, step: Step) -> None:
        assert step.buffer is not None
        self._empty(step.buffer, step)

    def _rewrite(self, step: Step) -> None:
        """The host sets a gradient (clipped, scaled, a seed): neither a pass left that, nor is it empty."""
        assert step.buffer is not None
        gradient = self._gradient(step.buffer)
        gradient.holds = gradient.emptied = None

    def _read(self, step: Step) -> None:
        buffer = step.buffer
        assert buffer is not None
        gradient = self._gradient(buffer)
        waiting = [r for r in self._open.values() if buffer in parameters(r)]
        if step.copied and waiting and not gradient.holds:
            self.early.append(Stale(buffer, EARLY, step))
        elif gradient.emptied is not None and not gradient.holds and step.compatible(gradient.emptied):
            self.stale.append(Stale(buffer, EMPTIED, step, gradient.emptied))
        gradient.used = True

    def _use(self, step: Step) -> None:
        buffer = step.buffer
        assert buffer is not None
        gradient = self._gradient(buffer)
        if gradient.emptied is not None and not gradient.holds and step.read is not None:
            taken = Step("read", step.read, step.read, buffer=buffer, path=step.path)
            self.stale.append(Stale(buffer, VIEW, taken, gradient.emptied))

    def _change(self, step: Step) -> None:
        assert step.buffer is not None
        gradient = self._gradient(step.buffer)
        gradient.changed = gradient.used
        self._versions[step.buffer] = self._versions.get(step.buffer, 0) + 1
        for written, _ in self._windows:  # a copy carries the state on, anything else ends it
            if step.source in written:
                written[step.buffer] = []
            else:
                written.pop(step.buffer, None)


def parameters(recording: Recording) -> list[Buffer]:
    """Arrays with a gradient that the tape reads and never writes."""
    written = _written(recording)
    found: dict[Buffer, None] = {}
    for event in recording.events:
        if event.recorded:
            for binding in event.bindings.values():
                if binding.requires_grad is True and binding.differentiable:
                    found.setdefault(binding.buffer)
    return [b for b in found if b not in written]


def first_reads(recording: Recording) -> list[tuple[Buffer, Event, Access]]:
    """Reads of arrays whose content from before the recording its operations use."""
    written: set[Buffer] = set()
    found: list[tuple[Buffer, Event, Access]] = []
    for event in recording.events:
        for access in event.effect.reads:
            binding = event.bindings.get(access.path)
            if binding is not None and binding.buffer not in written and binding.differentiable:
                found.append((binding.buffer, event, access))
        for access in event.effect.writes:
            if access.path in event.bindings:
                written.add(event.bindings[access.path].buffer)
    return found


def _carried(begun: list[tuple[Buffer, Event, Access]], written: _Writes) -> list[Buffer]:
    """Arrays of which a tape begins with elements that an earlier one has written."""
    found: dict[Buffer, None] = {}
    for buffer, event, read in begun:
        writes = written.get(buffer)
        if writes is not None and (not writes or any(may_touch(event, read, e, w) for e, w in writes)):
            found.setdefault(buffer)
    return list(found)


def accumulators(recording: Recording) -> list[Buffer]:
    """Arrays that the tape only accumulates into and reads: their adjoints are not used up."""
    stored: set[Buffer] = set()
    added: dict[Buffer, None] = {}
    read: set[Buffer] = set()
    for event in recording.events:
        if not event.recorded:
            continue
        for access in event.effect.writes:
            binding = event.bindings.get(access.path)
            if binding is None or binding.requires_grad is not True:
                continue
            if access.kind is AccessKind.ACCUMULATE:
                added.setdefault(binding.buffer)
            else:
                stored.add(binding.buffer)
        for access in event.effect.reads:
            binding = event.bindings.get(access.path)
            if binding is not None:
                read.add(binding.buffer)
    objectives = {b for back in recording.backwards for b in back.objective or ()}
    return [b for b in added if b not in stored and b in read and b not in objectives]


def _written(recording: Recording) -> _Writes:
    found: _Writes = {}
    for event in recording.events:
        if not event.recorded:
            continue
        for access in event.effect.writes:
            if access.path in event.bindings:
                found.setdefault(event.bindings[access.path].buffer, []).append((event, access))
    return found
