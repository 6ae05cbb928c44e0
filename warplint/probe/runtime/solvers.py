"""Do more turns of an iterative solver change the objective?

A few iterations of a solver stand for the solution of an equation. Autodiff and finite differences
agree on what the program computes; only more turns tell whether that is the solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import warp

from . import arrays
from .episodes import ObjectiveChild
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Event, Observer, Stream
from .kernels import may_write
from .measure import Measured

Site = tuple[str, int, int]
"""File, first and last line."""


MOST = 16
"""How many times as many turns are taken for the solution."""


class MoreTurns(Observer):
    """Runs on to an episode's objective, and turns each series of a solver's launches ``more`` times over.

    A series is what is launched at the given places with no other recorded launch in between.
    """

    def __init__(
        self, stream: Stream, reporter: Reporter, measured: Measured, sites: Sequence[Site], more: int
    ) -> None:
        self.stream = stream
        self.reporter = reporter
        self.measured = measured
        self.sites = sites
        self.more = more
        self.child: ObjectiveChild | None = None
        self.series: list[Event] = []
        self.turns = 0
        """Length of the longest series."""

    def before(self, event: Event) -> None:
        if self.child is None and event.name == self.measured.episode.start:
            parameter = self.stream.births.live.get(self.measured.episode.serial)
            included = [True] * self.measured.backwards
            reporter = _Noting(self.reporter, self)
            self.child = ObjectiveChild(self.measured.episode, parameter, reporter, [], included)
        if self.child is not None:
            ends = event.recorded or event.kind in ("tape-exit", "backward")
            if ends and not self.belongs(event):
                self.end()
            self.child.before(event)

    def after(self, event: Event) -> None:
        if self.child is not None:
            if self.belongs(event):
                self.series.append(event)
            self.child.after(event)

    def belongs(self, event: Event) -> bool:
        return (
            event.recorded
            and event.kind == "launch"
            and any(
                file == f and first <= line <= last
                for f, line in (s[:2] for s in event.stack)
                for file, first, last in self.sites
            )
        )

    def end(self) -> None:
        """Goes on with the series that has just ended."""
        series, self.series = self.series, []
        cycle = _last_turn(series)
        count = len(series) // max(1, len(cycle))
        if count < 2:
            return
        self.turns = max(self.turns, count)
        before = series[-2 * len(cycle) : -len(cycle)]
        carried = [c for now, then in zip(cycle, before) for c in _carried(now, then)]
        self.stream.depth += 1
        try:
            for _ in range(self.more * count):
                for target, source in carried:
                    arrays.put(target, arrays.content(source))
                for event in cycle:
                    warp.launch(**{**event.details["call"], "record_tape": False})
        finally:
            self.stream.depth -= 1

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave({"objective": float("nan"), "turns": self.turns})


class _Noting(Reporter):
    """A reporter that adds how long the series were."""

    def __init__(self, reporter: Reporter, run: MoreTurns) -> None:
        self.reporter, self.run = reporter, run

    def leave(self, report: Any) -> Any:
        self.reporter.leave({**report, "turns": self.run.turns})


def _last_turn(series: list[Event]) -> list[Event]:
    """The launches of a series since the one before the last at the last one's place."""
    if not series:
        return []
    place = series[-1].name[:2]
    earlier = [k for k, event in enumerate(series[:-1]) if event.name[:2] == place]
    return series[earlier[-1] + 1 :] if earlier else []


def _carried(now: Event, then: Event) -> list[tuple[Any, Any]]:
    """(array, where its next content is) for what a turn takes over from the one before."""
    made = {id(a): label for label, a in then.arrays}
    given = dict(now.arrays)
    pairs = [(a, given.get(made.get(id(a), ""))) for _, a in now.arrays]
    return [(a, source) for a, source in pairs if source is not None and source is not a and _is_new(a, then)]


def _is_new(array: Any, then: Event) -> bool:
    """Whether an array was an output of a launch: what it only reads is handed on by others."""
    return any(a is array and may_write(then.details["object"], label) for label, a in then.arrays)


def try_more(
    stream: Stream, run_user: Callable[[], None], measured: Measured, sites: Sequence[Site], deadline: float
) -> dict[str, Any] | None:
    """The objective with the program's own number of turns, with 8 and with 16 times as many."""
    found: list[float] = []
    turns = 0
    for more in (0, MOST // 2 - 1, MOST - 1):

        def work(reporter: Reporter, more: int = more) -> None:
            stream.observer = MoreTurns(stream, reporter, measured, sites, more)
            run_user()

        try:
            report = run_in_child(work, deadline)
        except ChildFailure:
            return None
        value, turns = float(report.get("objective", math.nan)), int(report.get("turns", 0))
        if not math.isfinite(value) or not turns:
            return None
        found.append(value)
    return {"turns": turns, "most": MOST * turns, "objectives": found}
