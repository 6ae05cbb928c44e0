"""Where episodes are measured: forks of the running program, or runs from its beginning.

A fork at the episode's start costs milliseconds, but threads do not survive it: a program that
waits for one of its own hangs. There every evaluation runs the program again from the beginning
to the same event ("respawn"): slower, the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import arrays, judge
from .forks import BecomeChild, ChildFailure, Reporter, fork, run_in_child
from .hooks import Event, Observer, Stream
from .measure import TYPICAL_PASSES, Maker, Measured, Measurement
from .operands import touched, uses
from .structure import Episode

Target = tuple[Episode, int, bool]
"""An episode, the number of its iteration, and whether two directions will do."""


class Trunk(Observer):
    """Runs the program unperturbed and forks at each episode's start to measure there."""

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        targets: list[Target],
        deadline: float,
        progress: Callable[[int, int], None],
        fixed: dict[tuple, list[tuple[str, float]]] | None = None,
        usual: float | None = None,
    ) -> None:
        self.fixed = fixed or {}
        """Directions and steps to take again, by (start, serial); empty: judge adaptively."""
        self.stream = stream
        self.reporter = reporter
        self.targets = {(e.start, e.serial): (e, iteration, brief) for e, iteration, brief in targets}
        self.deadline = deadline
        self.progress = progress
        self.usual = usual
        self.results: list[Measured] = []
        self.read: dict[tuple, int] = {}
        """Content (hashed) of the parameters that a recorded launch has read since they were written."""

    def before(self, event: Event) -> None:
        for key in [k for k in self.targets if k[0] == event.name]:
            episode, iteration, brief = self.targets.pop(key)
            self.here = episode
            if self.under_way(episode):
                problem = "nondeterministic: its launches come in another order in every run"
                self.results.append(Measured(episode, iteration, problem=problem))
                continue
            if known(self.results, episode) and self.is_slow():
                problem = "not measured: an earlier iteration is wrong, and a pass takes long"
                self.results.append(Measured(episode, iteration, problem=problem))
                continue
            measurement = Measurement(self, self.deadline, len(self.targets), self.fixed.get(key), self.usual)
            try:
                self.results.append(
                    measurement.measure(episode, iteration, brief or known(self.results, episode))
                )
            except BecomeChild as child:
                self.become(child.reporter, event)
                return
            if self.results[-1].hung or self.results[-1].too_long:
                self.reporter.leave(self.results)  # what takes too long here does so in later iterations, too
            self.progress(len(self.results), len(self.results) + len(self.targets))
        if not self.targets or (self.stream.total % 64 == 0 and time.monotonic() > self.deadline):
            self.reporter.leave(self.results)
        if event.recorded:
            for serial, array in self.awaited(event):
                if uses(event, array):
                    self.read[serial] = hash(arrays.content(array))

    def after(self, event: Event) -> None:
        if not event.recorded:
            for serial, _ in self.awaited(event):
                self.read.pop(serial, None)

    def is_slow(self) -> bool:
        """Whether another comparison would take the time of the search for the cause."""
        longest = max(r.child_seconds for r in self.results)
        return TYPICAL_PASSES * longest > 0.5 * (self.deadline - time.monotonic())

    def awaited(self, event: Event) -> list[tuple[tuple, Any]]:
        """Parameters still to be measured that an event was handed."""
        wanted = {serial for _, serial in self.targets}
        found = []
        for array in touched(event):
            base = arrays.root(array)
            birth = arrays.birth(base)
            if birth is not None and birth.serial in wanted:
                found.append((birth.serial, base))
        return found

    def under_way(self, episode: Episode) -> bool:
        """Whether what should be the version's first use is not: the events have other numbers."""
        known = self.read.get(episode.serial)
        parameter = self.stream.births.live.get(episode.serial)
        if episode.moved or known is None or parameter is None:
            return False
        return known == hash(arrays.content(parameter))

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave(self.results)

    # -- as a place to measure at --------------------------------------------------------

    def parameter(self) -> Any:
        found = self.stream.births.live.get(self.here.serial)
        return None if found is None else arrays.memory(found).copy()

    def run(self, make: Maker, deadline: float) -> dict:
        self._make = make
        return told(fork(deadline))

    def become(self, reporter: Reporter, event: Event) -> None:
        """In a fresh child: go on from ``event`` as what was asked for, or say why not.

        Nothing may escape from here: it would end up in the user's program, and its end would be
        reported on the trunk's own pipe.
        """
        try:
            observer = self._make(self.stream.births.live.get(self.here.serial), reporter)
            self.stream.observer = observer
            observer.before(event)
        except Exception as error:
            reporter.leave({"failed": f"{type(error).__name__}: {error}"})


class Respawn:
    """Measures an episode by running the program from its beginning for every evaluation."""

    def __init__(self, stream: Stream, run_user: Callable[[], None], episode: Episode) -> None:
        self.stream = stream
        self.run_user = run_user
        self.episode = episode

    def parameter(self) -> Any:
        report = self.run(lambda parameter, reporter: _Look(parameter, reporter), time.monotonic() + 60.0)
        return report["content"]

    def run(self, make: Maker, deadline: float) -> dict:
        def work(reporter: Reporter) -> None:
            self.stream.observer = _Arrival(self.stream, reporter, self.episode, make)
            self.run_user()

        return told(run_in_child(work, deadline))


class _Arrival(Observer):
    """Waits for an episode's start, and goes on from there as what was asked for."""

    def __init__(self, stream: Stream, reporter: Reporter, episode: Episode, make: Maker) -> None:
        self.stream = stream
        self.reporter = reporter
        self.episode = episode
        self.make = make

    def before(self, event: Event) -> None:
        if event.name != self.episode.start:
            return
        try:
            observer = self.make(self.stream.births.live.get(self.episode.serial), self.reporter)
        except Exception as error:
            self.reporter.leave({"failed": f"{type(error).__name__}: {error}"})
        self.stream.observer = observer
        observer.before(event)

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave({"failed": "the episode was not reached again"})


class _Look(Observer):
    """Reports the parameter's content."""

    def __init__(self, parameter: Any, reporter: Reporter) -> None:
        content = None if parameter is None else arrays.memory(parameter).copy()
        reporter.leave({"content": content})


def respawned(
    stream: Stream,
    run_user: Callable[[], None],
    targets: list[Target],
    deadline: float,
    progress: Callable[[int, int], None],
) -> list[Measured]:
    """Measures all targets without a fork of the running program."""
    results: list[Measured] = []
    for number, (episode, iteration, brief) in enumerate(targets):
        place = Respawn(stream, run_user, episode)
        measurement = Measurement(place, deadline, len(targets) - number - 1)
        try:
            measured = measurement.measure(episode, iteration, brief or known(results, episode))
        except ChildFailure as failure:
            measured = Measured(episode, iteration, problem=failure.reason)
        results.append(measured)
        progress(len(results), len(targets))
    return results


def known(results: list[Measured], episode: Episode) -> bool:
    """Once a parameter is known to be wrong, a further iteration only tells how it grows."""
    same = (r for r in results if r.episode.family == episode.family)
    return any(r.outcome == judge.DIFFERS for r in same)


def told(report: dict) -> dict:
    if "failed" in report:
        raise RuntimeError(report["failed"])
    return report
