"""Children that go on from an episode's start: to its objective, or to its consumed gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays
from .boundary import Boundary
from .carried import CarriedState
from .forks import Reporter
from .held import HostReads
from .hooks import Event, Observer
from .host_copies import HostCopies
from .loading import LOADING
from .objectives import (
    UNSEEDED,
    Terms,
    adopt_manual_gradients,
    note_chain,
    objective_of,
    resolution_of,
    row_of,
    seeds_of,
    unseeded_scalar,
)
from .operands import reads_array, touched
from .structure import Episode


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
                self.resolution = max(self.resolution, resolution_of(event))
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
