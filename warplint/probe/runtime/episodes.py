"""Children that go on from an episode's start: to its objective, or to its consumed gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays
from .carried import CarriedState
from .forks import Reporter
from .held import HostReads
from .hooks import Event, Observer
from .kernels import may_read
from .loading import LOADING
from .scout import adopt_manual_gradients, manual_seeds, note_chain
from .sites import Sites
from .structure import Episode


def objective_of(event: Event, baseline: dict[int, Any] | None, chain: set[int]) -> float | None:
    """What a backward call descends on, at this moment; None if the event is no backward.

    The loss where one is given; otherwise the inner product of the seeded arrays with the
    seeds of the unperturbed run (``baseline``), so that the seed itself is held fixed.
    """
    if event.kind == "backward":
        loss = event.details.get("loss")
        if arrays.is_array(loss):
            return float(np.sum(arrays.recorded_values(loss)))
        seeds = baseline if baseline is not None else seeds_of(event, chain, frozenset())
        seeded = seedable(event)
        if UNSEEDED in seeds:
            scalar = unseeded_scalar(event)
            return float(np.sum(arrays.values(scalar))) if scalar is not None else 0.0
        return float(sum(np.sum(arrays.values(seeded[i]) * seed) for i, seed in seeds.items() if i in seeded))
    if event.kind == "adjoint":
        pairs = manual_seeds(event, chain)
        if not pairs:
            return None
        seeds = baseline if baseline is not None else seeds_of(event, chain, frozenset())
        return float(
            sum(np.sum(arrays.values(value) * seeds[i]) for i, (value, _) in enumerate(pairs) if i in seeds)
        )
    return None


UNSEEDED = -1
"""Stands among the seeds for the scalar that nothing was seeded for."""


def unseeded_scalar(event: Event) -> Any:
    """The number that a tape ends with, if its backward pass is given nothing to begin with."""
    if event.details.get("loss") is not None or event.details.get("grads"):
        return None
    launches = [launch for launch in event.details["tape"].launches if not callable(launch)]
    given = [a for launch in launches for _, a in arrays.walk([*launch[3], *launch[4]])]
    if any(a.grad is not None and a.grad.ptr and arrays.memory(a.grad).any() for a in given):
        return None
    last = arrays.walk([*launches[-1][3], *launches[-1][4]]) if launches else ()
    scalars = [a for _, a in last if a.size == 1 and a.grad is not None and arrays.is_float(a)]
    return scalars[-1] if scalars and arrays.values(scalars[-1]).size == 1 else None


def recording_of(event: Event) -> tuple | None:
    """Names what a backward call with a loss goes back over; None for other events.

    The same loss on the same recording is one objective, however often backward is called on it.
    """
    loss = event.details.get("loss")
    if event.kind != "backward" or not arrays.is_array(loss):
        return None
    tape = event.details["tape"]
    return (getattr(tape, "_warplint_recording", id(tape)), len(tape.launches), id(arrays.root(loss)))


def row_of(event: Event, seeds: dict[int, Any]) -> tuple[tuple, int, int] | None:
    """Names the row of a Jacobian that a backward call computes: one output element seeded, no loss."""
    if event.kind != "backward" or event.details.get("loss") is not None or len(seeds) != 1:
        return None
    index, seed = next(iter(seeds.items()))
    places = np.flatnonzero(seed) if index != UNSEEDED else np.zeros(0, dtype=int)
    tape = event.details["tape"]
    recording = (getattr(tape, "_warplint_recording", id(tape)), len(tape.launches))
    return (recording, index, int(places[0])) if len(places) == 1 else None


class Terms:
    """What each backward call of an episode adds to the objective."""

    def __init__(self) -> None:
        self.recordings: set[tuple] = set()
        self.left: dict[int, tuple[Any, int, float]] = {}
        """Losses gone back over, by identity: the array, its resets and its value then."""

    def of(self, event: Event, value: float) -> float:
        """``value``, without what an earlier call of the episode has counted already.

        That is all of it for a second pass over the same recording, and what a loss array
        held before where the recording only adds to it.
        """
        recording = recording_of(event)
        if recording is None:
            return value
        if recording in self.recordings:
            return 0.0
        self.recordings.add(recording)
        base = arrays.root(event.details["loss"])
        resets = arrays.resets(base)
        known, then, before = self.left.get(id(base), (None, 0, 0.0))
        self.left[id(base)] = (base, resets, value)
        counted = known is base and then == resets and _adds_to(event.details["tape"], base)
        return value - before if counted else value

    def note_launch(self, event: Event) -> None:
        """A launch off the tape may have reset a loss."""
        if self.left and not event.recorded:
            for _, array in event.arrays:
                self.left.pop(id(arrays.root(array)), None)


def _adds_to(tape: Any, base: Any) -> bool:
    """Whether a tape's first launch on an array goes on from what the array held."""
    for launch in tape.launches:
        if callable(launch):
            continue
        for label, array in arrays.arguments(launch[0], launch[3], launch[4]):
            if arrays.root(array) is base:
                return may_read(launch[0], label)
    return False


def seeds_of(event: Event, chain: set[int], adjoints: set[int] | frozenset[int]) -> dict[int, Any]:
    """The seeds of a backward call, by position among the arrays that may be seeded.

    A seed whose content is in ``adjoints`` was read from a gradient that an earlier backward
    call of the episode made (hand-written checkpointing), or is that gradient itself: it carries
    the objective on and is no term of its own.
    """
    if event.kind == "adjoint":
        return {i: arrays.values(seed) for i, (_, seed) in enumerate(manual_seeds(event, chain))}
    if event.details.get("loss") is not None:
        return {}
    grads = event.details.get("grads")
    if grads:
        found = {}
        for i, g in enumerate(grads.values()):
            if arrays.is_array(g):
                given = arrays.used_up(g)
                if given is not None or not (hash(arrays.content(g)) in adjoints or is_adjoint(g)):
                    found[i] = arrays.values(g) if given is None else given
        return found
    seeds = {}
    for i, array in seedable(event).items():
        gradient = array.grad
        given = arrays.used_up(gradient) if gradient is not None and gradient.ptr else None
        if given is not None:
            seeds[i] = given
        elif gradient is not None and gradient.ptr and arrays.given_by_user(gradient):
            value = arrays.values(gradient)
            if np.any(value) and hash(arrays.content(gradient)) not in adjoints:
                seeds[i] = value
    return seeds


def is_adjoint(seed: Any) -> bool:
    """Whether a seed is the very gradient that a backward pass left in another array."""
    return arrays.is_gradient(seed) and not arrays.given_by_user(arrays.root(seed))


def seedable(event: Event) -> dict[int, Any]:
    grads = event.details.get("grads")
    if grads:
        return dict(enumerate(grads.keys()))
    found: dict[int, Any] = {}
    seen: set[int] = set()
    tape = event.details.get("tape")
    for launch in tape.launches if tape is not None else ():
        if callable(launch):
            continue
        for _, array in arrays.walk([*launch[3], *launch[4]]):
            if array.grad is not None and id(array) not in seen:
                seen.add(id(array))
                found[len(found)] = array
    return found


class HostCopies:
    """Contents that came from the host while no tape was recording, by birth or event name.

    Held at their unperturbed values, they make a finite difference that treats them as
    constants: what a deliberately detached target or window start is.
    """

    def __init__(self) -> None:
        self.births: dict[tuple, bytes] = {}
        self.events: dict[tuple, bytes] = {}
        self.changed: set[tuple] = set()
        """Births and events whose content depends on the parameter."""

    def note_birth(self, array: Any) -> None:
        if self._from_host(array):
            self.births[array._warplint_birth.serial] = arrays.content(array)

    def note(self, event: Event) -> None:
        if self._written_from_host(event):
            self.events[event.name] = arrays.content(event.target)

    def hold_birth(self, array: Any) -> None:
        serial = array._warplint_birth.serial
        data = self.births.get(serial)
        if data is not None and self._from_host(array) and arrays.content(array) != data:
            self.changed.add(serial)
            arrays.put(array, data)

    def hold(self, event: Event) -> None:
        data = self.events.get(event.name)
        if data is not None and self._written_from_host(event) and arrays.content(event.target) != data:
            self.changed.add(event.name)
            arrays.put(event.target, data)

    def __bool__(self) -> bool:
        return bool(self.births or self.events)

    def places(self, sites: Sites) -> list[tuple[str, int, str]]:
        """Where the copies were made: (file, line, the name they were given)."""
        found = {}
        for serial in self.births:
            stack = serial[0][0]
            if stack and serial in self.changed:
                found[stack[0][:2]] = sites.label(stack) or "an array"
        for name in self.events:
            if name in self.changed:
                found[name[:2]] = "an array"
        return [(file, line, name) for (file, line), name in sorted(found.items())]

    @staticmethod
    def _from_host(array: Any) -> bool:
        return (
            getattr(array, "_warplint_from_host", False)
            and not arrays.recording()
            and bool(array.ptr)
            and arrays.is_float(array)
        )

    @staticmethod
    def _written_from_host(event: Event) -> bool:
        return (
            event.kind == "assign"
            and event.source is None
            and event.tape is None
            and arrays.is_float(event.target)
            and arrays.gradient_owner(event.target) is None
        )


class Boundary:
    """Where the next version of a parameter begins, in a run that may be perturbed.

    The name alone does not do: an adaptive loop that takes another turn moves the occurrence of
    its launches. So the parameter must have been written since as well, or be another array; and
    a recorded launch that reads it after it was written off the tape has begun the next version
    whatever its name. A parameter that is put aside and put back (``episode.resumed``) is written
    many times in between.
    """

    def __init__(self, episode: Episode, parameter: Any) -> None:
        self.name = episode.next_start
        same = parameter is not None and episode.next_serial in (None, episode.serial)
        self.parameter = parameter if same else None
        self.content = hash(arrays.content(parameter)) if same else 0
        self.written = False
        self.away = episode.resumed
        """The event at which the parameter is back; None from there on."""
        self.lost = False
        """Whether what was put back is not what was put aside."""

    def before(self, event: Event) -> None:
        if self.away is not None and event.name == self.away:
            self.away = None
            self.lost = self.parameter is not None and self.changed()

    def after(self, event: Event) -> None:
        away = self.away is not None or event.recorded or event.kind == "read"
        if self.parameter is None or self.written or away:
            return
        if any(arrays.root(a) is self.parameter for a in touched(event)):
            self.written = self.changed()

    def reached(self, event: Event) -> bool:
        if event.name == self.name:
            return self.parameter is None or self.changed()
        if self.away is not None or not (self.written and event.recorded and self.name is not None):
            return False
        return any(arrays.root(a) is self.parameter for a in touched(event))

    def changed(self) -> bool:
        return hash(arrays.content(self.parameter)) != self.content


class ObjectiveChild(Observer):
    """Runs on to the episode's last backward call that counts, reports the objective, and leaves."""

    def __init__(
        self,
        episode: Episode,
        parameter: Any,
        reporter: Reporter,
        seeds: list[dict[int, Any]],
        included: list[bool],
        held: HostCopies | None = None,
        host_reads: HostReads | None = None,
        carried: CarriedState | None = None,
    ) -> None:
        self.boundary = Boundary(episode, parameter)
        self.reporter = reporter
        self.carried = carried
        self.seeds = seeds
        self.included = included
        self.held = held
        self.host_reads = host_reads
        self.passed: tuple = ()
        """Where backward was last called."""
        self.values: list[float] = []
        self.terms = Terms()
        self.chain: set[int] = set()

    def before(self, event: Event) -> None:
        self.boundary.before(event)
        if self.boundary.lost:
            self.finished(None)
        if self.carried is not None:
            self.carried.hold(event)
        if event.kind == "launch":
            self.chain.clear()
            self.terms.note_launch(event)
        if event.kind in ("backward", "adjoint"):
            index = len(self.values)
            baseline = self.seeds[index] if index < len(self.seeds) else None
            if event.kind == "backward" and event.details.get("loss") is not None:
                baseline = None
            value = objective_of(event, baseline, self.chain)
            if value is not None:
                self.values.append(self.terms.of(event, value))
                self.passed = event.stack
                if len(self.values) == len(self.included):
                    terms = [v for v, counts in zip(self.values, self.included) if counts]
                    changed = self.held.changed if self.held is not None else set()
                    reads = self.host_reads.changed if self.host_reads is not None else {}
                    self.reporter.leave(
                        {
                            "objective": float(np.sum(terms)),
                            "complete": True,
                            "changed": changed,
                            "reads": reads,
                            "carried": self.carried is not None and self.carried.changed,
                        }
                    )
        elif self.boundary.reached(event):
            self.finished(None)

    def after(self, event: Event) -> None:
        self.boundary.after(event)
        if event.kind == "adjoint":
            note_chain(event, self.chain)
        if self.held is not None:
            self.held.hold(event)

    def born(self, array: Any) -> None:
        if self.held is not None:
            self.held.hold_birth(array)

    def read_result(self, event: Event, result: Any) -> Any:
        if self.host_reads is None:
            return result
        return self.host_reads.hold(event, result, len(self.values), self.passed)

    def finished(self, error: BaseException | None) -> None:
        text = f"{type(error).__name__}: {error}" if error is not None else None
        self.reporter.leave({"objective": float("nan"), "complete": False, "error": text})


class GradientChild(Observer):
    """Runs on and collects what user code reads of the parameter's gradient.

    ``until_next`` goes on to the next version of the parameter and reports its content too;
    ``copies`` hands the user copies of the gradient instead of live views.
    """

    def __init__(
        self,
        episode: Episode,
        parameter: Any,
        reporter: Reporter,
        *,
        until_next: bool = False,
        copies: bool = False,
        extra: Callable[[], Any] | None = None,
        host_reads: HostReads | None = None,
        carried: CarriedState | None = None,
        next_parameter: Callable[[], Any] | None = None,
    ) -> None:
        self.episode = episode
        self.parameter = parameter
        self.boundary = Boundary(episode, parameter)
        self.reporter = reporter
        self.until_next = until_next
        self.copies = copies
        self.extra = extra
        self.host_reads = host_reads
        self.carried = carried
        self.next_parameter = next_parameter
        self.revise: Callable[[Any], Any] | None = None
        """What a counterfactual makes of the consumed gradient."""
        self.reads: list[tuple[int, int, Any]] = []
        self.objectives: list[float] = []
        self.counted_terms = Terms()
        self.seeds: list[dict[int, Any]] = []
        self.rows: list[tuple[tuple, int, int] | None] = []
        """The rows of a Jacobian that the backward calls compute, if they do."""
        self.last_row: int | None = None
        """The backward call whose row the last read was meant to be, if gradients are read row by row."""
        self.epochs: list[int | None] = []
        """Resets of the parameter's gradient as each backward call ended that changed it."""
        self.gradient_before: int | None = None
        self.given: Any = None
        """What user code had put into the gradient before the pass, if it did."""
        self.continued = False
        """Whether the program went on with the parameter after its gradient was read."""
        self.copied = HostCopies()
        self.terms: list[int] = []
        """Losses and seeds that each backward call adds to the objective."""
        self.resolution = 0.0
        self.late: Any = None
        self.gradient: Any = None
        self.changed_by: tuple[str, tuple] | None = None
        """What set the gradient's content after it was read: the operation and its call site."""
        self.chain: set[int] = set()
        self.adjoints: set[int] = set()
        """Contents (hashed) of gradients that user code read in this episode."""
        self.old_reads = {r.name for r in episode.reads if r.kind == "old"}
        """Reads of the gradient of an array that this one took the place of."""
        self.last_read = episode.reads[-1].name if episode.reads else None
        self.read_too_early = False
        self.unseen_use = bool(episode.reads) and episode.reads[-1].kind == "shared"

    def before(self, event: Event) -> None:
        self.boundary.before(event)
        if self.reads and self.boundary.reached(event):
            self.leave(True)
        if self.carried is not None:
            self.carried.before(event)
        if self.until_next and self.episode.next_start is None and self.reads and self.goes_on(event):
            self.continued = True
            self.leave(True)
        if event.kind == "launch":
            self.chain.clear()
            self.counted_terms.note_launch(event)
        if event.kind in ("backward", "adjoint"):
            if event.kind == "adjoint":
                adopt_manual_gradients(event)
            elif self.parameter.grad is not None:
                self.gradient_before = hash(arrays.content(self.parameter.grad))
                if self.episode.rewritten and self.given is None:
                    self.given = arrays.values(arrays.root(self.parameter.grad))
            seeds = seeds_of(event, self.chain, self.adjoints)
            if event.kind == "backward" and not seeds and not self.objectives:
                seeds = {UNSEEDED: 1.0} if unseeded_scalar(event) is not None else seeds
            value = objective_of(event, seeds, self.chain)
            if value is not None:
                self.objectives.append(self.counted_terms.of(event, value))
                self.seeds.append(seeds)
                self.rows.append(row_of(event, seeds))
                self.terms.append(len(seeds) + (event.details.get("loss") is not None))
                self.resolution = max(self.resolution, _resolution(event))
                if self.read_too_early and event.kind == "adjoint":
                    self.leave(True)
            return
        for array in touched(event):
            owner = arrays.gradient_owner(array)
            if event.name in self.old_reads and owner is not self.parameter and arrays.is_gradient(array):
                self.collect(array)
            if owner is None or not reads_array(event, array):
                continue
            if self.objectives:
                self.adjoints.add(hash(arrays.content(array)))
            if owner is self.parameter and self.boundary.away is None:
                self.collect(array)
        if self.until_next and self.gradient is not None and event.kind != "read":
            for array in touched(event):
                if arrays.root(array) is self.parameter:
                    self.late = arrays.values(arrays.root(self.gradient))
        if event.name == self.last_read and self.reads and not self.until_next:
            if self.objectives:
                self.leave(True)
            self.read_too_early = True  # go on to the backward call that should have come first

    def goes_on(self, event: Event) -> bool:
        """Whether the event uses or changes the parameter again, off the tape or in a new pass."""
        if event.kind == "backward":
            return True
        return event.kind in ("assign", "copy", "launch") and any(
            arrays.root(a) is self.parameter for a in touched(event)
        )

    def born(self, array: Any) -> None:
        self.copied.note_birth(array)

    def after(self, event: Event) -> None:
        self.boundary.after(event)
        self.copied.note(event)
        if self.carried is not None:
            self.carried.after(event)
        if event.kind == "adjoint":
            note_chain(event, self.chain)
        if event.kind == "backward" and self.read_too_early and self.objectives:
            self.leave(True)
        if event.kind in ("backward", "adjoint") and len(self.epochs) < len(self.objectives):
            gradient = self.parameter.grad if event.kind == "backward" else None
            lost = gradient is not None and self.gradient_before != hash(arrays.content(gradient))
            self.epochs.append(arrays.resets(gradient) if lost else None)
        if self.until_next and self.gradient is not None:
            self.note_change()
        if self.unseen_use and event.name == self.last_read and self.parameter.grad is not None:
            self.collect(self.parameter.grad)
            if not self.until_next:
                self.leave(True)

    def note_change(self) -> None:
        """Remembers what first changed the gradient after it was read."""
        if self.changed_by is None and arrays.resets(self.gradient) != self.reads[-1][1]:
            self.changed_by = arrays.reset_by(self.gradient)

    def collect(self, array: Any) -> None:
        base = arrays.root(array)
        self.gradient = base
        resets = arrays.resets(base)
        self.reads.append((len(self.objectives), resets, arrays.values(base)))

    def read_result(self, event: Event, result: Any) -> Any:
        if self.host_reads is not None:
            self.host_reads.note(event, result)
        if self.copies and arrays.gradient_owner(event.target) is self.parameter:
            return np.array(result)
        return result

    def consumed(self) -> Any:
        """The gradient the optimizer got.

        What the backward pass left is taken at the first read after it; what user code makes of
        it from there on (clipping, scaling, decay) is the optimizer. Only a gradient emptied
        before a later read is lost. Reads after another backward call add up if the gradient
        was reset in between, and replace what they include otherwise.
        """
        self.counted: list[tuple[int, int]] = []
        self.last_row = self.row_by_row()
        if self.last_row is not None:
            backwards, resets, value = self.reads[-1]
            self.counted = [(backwards, resets)]
            return value
        total: Any = None
        current: Any = None
        last = (-1, -1)
        for backwards, resets, value in self.reads:
            if self.given is not None and backwards == 0:
                continue  # what was read to make it
            if current is None or backwards != last[0]:
                self.counted.append((backwards, resets))
            if current is not None and backwards == last[0]:
                if not np.any(value):
                    current = value
                continue
            if current is not None and resets != last[1]:
                total = current if total is None else total + current
            current = value
            last = (backwards, resets)
        if current is None:
            return None
        consumed = current if total is None else total + current
        same = self.given is not None and self.given.shape == consumed.shape
        return consumed - self.given if same else consumed

    def row_by_row(self) -> int | None:
        """Which call's row the last read should be, where the rows of a Jacobian are read one by one.

        Nobody sums rows that are read each by itself: what was left of the row before is too much.
        """
        if len(self.reads) < 2:
            return None
        (before, then, _), (last, now, _) = self.reads[-2:]
        if then != now or not 0 < before < last <= len(self.rows):
            return None
        one, two = self.rows[before - 1], self.rows[last - 1]
        same = one is not None and two is not None and one[:2] == two[:2] and one != two
        return last - 1 if same and last == before + 1 else None

    def included(self) -> list[bool]:
        """Which backward calls are terms of what the consumed gradient is the gradient of.

        A call whose contribution was zeroed before any read is none; nor is one after the last
        read that counts. (``consumed`` must have been called.)
        """
        if self.last_row is not None:
            return [False] * self.last_row + [True]
        found = []
        for index in range(len(self.objectives)):
            epoch = self.epochs[index] if index < len(self.epochs) else None
            found.append(
                any(epoch in (None, resets) and index < backwards for backwards, resets in self.counted)
            )
        if not any(found):
            return [True] * len(found)
        while not found[-1]:
            found.pop()
        return found

    def finished(self, error: BaseException | None) -> None:
        if self.until_next and self.gradient is not None:
            self.late = arrays.values(arrays.root(self.gradient))
        self.leave(False, f"{type(error).__name__}: {error}" if error is not None else None)

    def leave(self, complete: bool, error: str | None = None) -> None:
        following = self.next_parameter() if self.next_parameter is not None else None
        gradient = self.consumed()
        if gradient is not None and self.revise is not None:
            gradient = self.revise(gradient)
        included = self.included()
        self.reporter.leave(
            {
                "gradient": gradient,
                "included": included,
                "loading": LOADING,
                "continued": self.continued,
                "copied": self.copied,
                "carried": self.carried,
                "host_reads": self.host_reads,
                "late": self.late,
                "changed_by": self.changed_by,
                "next": arrays.content(following) if following is not None else None,
                "objectives": self.objectives,
                "seeds": self.seeds,
                "terms": sum(n for n, counts in zip(self.terms, included) if counts),
                "resolution": self.resolution,
                "complete": complete,
                "error": error,
                "extra": self.extra() if self.extra is not None else None,
            }
        )


def _resolution(event: Event) -> float:
    """Relative spacing of the numbers the objective is made of."""
    loss = event.details.get("loss")
    candidates = (
        [loss] if arrays.is_array(loss) else [a for _, a in event.arrays] or list(seedable(event).values())
    )
    kinds = [arrays.memory(a).dtype for a in candidates if arrays.is_array(a) and arrays.is_float(a)]
    return max((float(np.finfo(k).eps) for k in kinds), default=float(np.finfo(np.float32).eps))


def touched(event: Event) -> list[Any]:
    """Every array an event was handed."""
    found = [a for _, a in event.arrays]
    for array in (event.target, event.source):
        if arrays.is_array(array):
            found.append(array)
    return found


def reads_array(event: Event, array: Any) -> bool:
    """Whether the event reads ``array`` (rather than only overwriting it)."""
    if event.kind in ("zero", "fill"):
        return False
    if event.kind in ("copy", "assign"):
        return array is event.source
    return event.kind in ("launch", "reduce", "read", "export")
