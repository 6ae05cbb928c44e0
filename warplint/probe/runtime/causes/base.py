"""A run of the program with causes taken away, and what a kind of cause has to offer for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays
from ..episodes import GradientChild
from ..forks import BecomeChild, Reporter, fork
from ..hooks import Event, Observer, Stream
from ..measure import Measured
from ..objectives import adopt_manual_gradients
from .activity import Activity


class Kind(Observer):
    """One kind of cause, in one counterfactual run: sees where it occurs, removes what is selected.

    A cause is a plain dict with at least ``key`` (a tuple that begins with ``NAME`` and is the
    same in every run) and ``stack`` (frames of the user's code, innermost first).
    """

    NAME = ""
    LATE = False
    """Looked at only if the kinds that are not late leave the difference unexplained."""

    def __init__(self, run: CounterfactualRun) -> None:
        self.run = run
        self.stream: Stream = run.stream

    def removes(self, key: tuple) -> bool:
        """Whether the cause of this key is taken away in this run."""
        return key in self.run.removed

    def prepare(self) -> None:
        """Called before the user's program starts."""

    def measure(self, parameter: Any) -> None:
        """Called before the first event of the measured episode: may fork children there."""

    def start(self) -> None:
        """Called at the first event of the measured episode."""

    def found(self) -> list[dict[str, Any]]:
        """The causes of this kind that were seen in the measured episode."""
        return []

    def gradient(self, consumed: Any) -> Any:
        """The consumed gradient without the selected causes, if that cannot be had by running."""
        return consumed

    def corrections(self) -> dict[str, float]:
        """Per direction (by name): what the selected causes add to autodiff along it."""
        return {}


class CounterfactualRun(Observer):
    """Runs the program from its start with causes taken away, up to the gradient's use."""

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        measured: Measured,
        removed: frozenset,
        pinned: dict[tuple, list],
        kinds: tuple[type[Kind], ...],
        deadline: float,
    ) -> None:
        self.deadline = deadline
        self.stream = stream
        self.reporter = reporter
        self.measured = measured
        self.episode = measured.episode
        self.removed = removed
        self.pinned = pinned
        self.inner: GradientChild | None = None
        self.parameter: Any = None
        """The measured parameter's array, once the episode has begun."""
        self.passes = 0
        """Backward calls (or adjoint launches) since the episode began."""
        self.activity = Activity()
        self.kinds = [kind(self) for kind in kinds]
        for kind in self.kinds:
            kind.prepare()

    @property
    def started(self) -> bool:
        """Whether the measured episode has begun."""
        return self.inner is not None

    def before(self, event: Event) -> None:
        self.pin(event)
        if self.inner is None and event.name == self.episode.start:
            self.parameter = self.stream.births.live.get(self.episode.serial)
            try:
                for kind in self.kinds:
                    kind.measure(self.parameter)
            except BecomeChild as child:
                self.become(child.reporter, event)
                return
            self.inner = GradientChild(self.episode, self.parameter, self.reporter, extra=self.facts)
            self.inner.revise = self.revise
            self.activity.start(self.parameter)
            for kind in self.kinds:
                kind.start()
        if event.kind == "adjoint":
            adopt_manual_gradients(event)
        if self.inner is not None:
            self.activity.before(event)
        for kind in self.kinds:
            kind.before(event)
        if self.inner is not None:
            self.passes += event.kind in ("backward", "adjoint")
            self.inner.before(event)

    def name_of(self, array: Any) -> str | None:
        """What the user calls an array."""
        born = arrays.birth(arrays.root(array)) if array is not None else None
        return self.stream.sites.label(born.stack) if born is not None else None

    def spawn(self, make: Callable[[Reporter], Observer]) -> Any:
        """What a fork from here on reports; ``make`` sets it up and says who observes it."""
        self._make = make
        return fork(self.deadline)

    def become(self, reporter: Reporter, event: Event) -> None:
        try:
            observer = self._make(reporter)
            self.stream.observer = observer
            observer.before(event)
        except Exception as error:
            reporter.leave({"failed": f"{type(error).__name__}: {error}"})

    def pin(self, event: Event) -> None:
        """Gives parameters the content the measured run had: a cause taken away earlier may
        have changed what the optimizer made of them since."""
        for episode, content in self.pinned.get(event.name, ()):
            parameter = self.stream.births.live.get(episode.serial)
            if parameter is not None:
                memory = arrays.memory(parameter)
                memory[...] = content.reshape(memory.shape).astype(memory.dtype)

    def after(self, event: Event) -> None:
        if self.inner is not None:
            self.activity.after(event)
        for kind in self.kinds:
            kind.after(event)
        if self.inner is not None:
            self.inner.after(event)

    def born(self, array: Any) -> None:
        if self.inner is not None:
            self.activity.born(array)
        for kind in self.kinds:
            kind.born(array)

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        for kind in reversed(self.kinds):
            run = _around(kind, call, run)
        return run()

    def finished(self, error: BaseException | None) -> None:
        if self.inner is not None:
            self.inner.finished(error)
        self.reporter.leave({"gradient": None, "error": f"{error}", "extra": self.facts(), "objectives": []})

    def revise(self, gradient: Any) -> Any:
        for kind in self.kinds:
            gradient = kind.gradient(gradient)
        return gradient

    def facts(self) -> dict[str, Any]:
        corrections: dict[str, float] = {}
        for kind in self.kinds:
            for name, value in kind.corrections().items():
                corrections[name] = corrections.get(name, 0.0) + value
        return {
            "causes": [cause for kind in self.kinds for cause in kind.found()],
            "corrections": corrections,
        }


def _around(kind: Kind, call: dict[str, Any], run: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: kind.around_adjoint(call, run)


def projected(report: dict[str, Any], name: str, vector: Any) -> float:
    """Autodiff along a direction as a counterfactual run tells it."""
    with np.errstate(all="ignore"):
        ad = float(np.sum(np.reshape(report["gradient"], vector.shape) * vector))
    return ad - float(report["extra"]["corrections"].get(name, 0.0))
