"""What becomes of the objective over the iterations, where the gradients are right.

A right gradient is no promise that training works. The loss, the updates and the curvature along the
gradient tell a learning rate that is too large from an objective that jumps, and the first operation
whose result is not finite tells where the numbers run away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Event, Observer, Stream
from .measure import Measured
from .objectives import objective_of

ITERATIONS = 40
"""Iterations that are looked at."""


class Course(Observer):
    """Notes the objective and the parameter at every backward call."""

    def __init__(self, stream: Stream, reporter: Reporter, measured: list[Measured], seconds: float) -> None:
        self.stream = stream
        self.reporter = reporter
        self.episodes = [m.episode for m in measured]
        self.until = time.monotonic() + seconds
        self.rows: list[dict[str, Any]] = []
        self.key: list[bytes] | None = None
        self.last: list[Any] = []
        self.gradients: list[Any] = []
        self.value = float("nan")

    def parameters(self) -> list[Any]:
        """The arrays that are the parameters now: born again in every iteration, or the same ones."""
        found = []
        for episode in self.episodes:
            array = self.stream.births.live.get(episode.serial)
            ordinal = self.stream.births.counts.get(episode.family, 0) - 1
            if ordinal > episode.serial[1]:
                array = self.stream.births.live.get((episode.family, ordinal), array)
            if array is not None:
                found.append(array)
        return found

    def before(self, event: Event) -> None:
        if event.kind != "backward":
            return
        value = objective_of(event, None, set())
        self.value = float("nan") if value is None else value

    def after(self, event: Event) -> None:
        if event.kind != "backward":
            return
        held = self.parameters()
        contents = [arrays.content(a) for a in held]
        if contents != self.key:
            self.key = contents
            self.begin([arrays.values(a) for a in held])
        row = self.rows[-1]
        row["objective"] += self.value
        row["calls"] += 1
        self.gradients = [
            arrays.values(arrays.root(a.grad)).ravel() for a in held if getattr(a, "grad", None) is not None
        ]
        if not np.isfinite(row["objective"]):
            self.leave("not finite")
        if len(self.rows) > ITERATIONS or time.monotonic() > self.until:
            self.rows.pop()
            self.leave("stopped")

    def begin(self, values: list[Any]) -> None:
        """The parameters have changed: how far did the last update go, and down the gradient?"""
        if self.rows and self.last and all(a.shape == b.shape for a, b in zip(self.last, values)):
            moved = np.concatenate([(b - a).ravel() for a, b in zip(self.last, values)])
            row = self.rows[-1]
            row["update"] = float(np.linalg.norm(moved))
            if sum(g.size for g in self.gradients) == moved.size:
                gradient = np.concatenate(self.gradients)
                size = float(np.linalg.norm(gradient))
                row["slope"] = size
                row["along"] = -float(np.sum(moved * gradient)) / size if size else 0.0
        self.last = values
        self.rows.append({"objective": 0.0, "calls": 0, "update": None, "along": None, "slope": None})

    def leave(self, ending: str, error: str | None = None) -> None:
        self.reporter.leave({"rows": self.rows, "ending": ending, "error": error})

    def finished(self, error: BaseException | None) -> None:
        self.leave("finished" if error is None else "raised", None if error is None else f"{error}")


class Onset(Observer):
    """The first operation that makes something not finite of finite values."""

    def __init__(self, stream: Stream, reporter: Reporter, begin: int) -> None:
        self.stream = stream
        self.reporter = reporter
        self.begin = begin
        """Backward calls after which to begin looking."""
        self.passes = 0
        self.sound: dict[int, bool] = {}

    def before(self, event: Event) -> None:
        if self.passes >= self.begin and event.kind == "launch":
            event.details["sound"] = [a for _, a in event.arrays if arrays.is_float(a) and _finite(a)]

    def after(self, event: Event) -> None:
        self.passes += event.kind == "backward"
        for array in event.details.pop("sound", ()):
            if not _finite(array):
                base = arrays.root(array)
                born = arrays.birth(base)
                owner = arrays.gradient_owner(base)
                if owner is not None:
                    born = arrays.birth(owner)
                name = self.stream.sites.label(born.stack) if born is not None else None
                self.reporter.leave(
                    {
                        "kernel": event.details.get("kernel"),
                        "stack": [list(f[:2]) for f in event.stack[:4]],
                        "array": name,
                        "gradient": owner is not None,
                        "occurrence": event.name[-1] + 1,
                    }
                )

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave(None)


def course(
    stream: Stream, run_user: Callable[[], None], measured: list[Measured], deadline: float
) -> dict[str, Any] | None:
    """The objective of each iteration, and where it stops being finite; None if it cannot be seen."""
    first = [m for m in measured if m.iteration == min(o.iteration for o in measured)]
    left = deadline - time.monotonic()
    if left < 3.0:
        return None
    if any(b.kind == "adjoint" for m in first for b in m.episode.backwards):
        return None

    def watch(reporter: Reporter) -> None:
        stream.observer = Course(stream, reporter, first, 0.5 * left)
        run_user()

    def look(reporter: Reporter) -> None:
        stream.observer = Onset(stream, reporter, begin)
        run_user()

    try:
        found = run_in_child(watch, deadline)
        if "rows" not in found:
            return None
        found["onset"] = None
        if found["ending"] == "not finite":
            begin = sum(row["calls"] for row in found["rows"][:-2])
            found["onset"] = run_in_child(look, deadline)
    except ChildFailure:
        return None
    found["iteration"] = 1
    found["curvature"] = _curvature(first)
    return dict(found)


def _curvature(first: list[Measured]) -> dict[str, float] | None:
    """Slope and curvature of the objective along the gradient (per unit of length), by differences."""
    if len(first) != 1 or first[0].curvature is None:
        return None
    vector = first[0].vectors["gradient"]
    size = float(np.linalg.norm(vector))
    slope = next(c.fd for n, c in first[0].checks if n == "gradient")
    return {"slope": slope / size, "curvature": first[0].curvature / size**2}


def _finite(array: Any) -> bool:
    return bool(np.all(np.isfinite(arrays.memory(array))))
