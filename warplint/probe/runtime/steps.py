"""What an optimizer makes of right gradients: does its step go down, and is the objective the same?

Where gradients are right and training still fails, two causes are common: a step that is too long,
and an objective that is another one in every iteration because random numbers are drawn anew.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays, judge
from .episodes import ObjectiveChild
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Event, Observer, Stream
from .measure import Measured

SAME = 1.0e-4
"""Relative difference of two values of the objective that passes for none."""


class Moved(Observer):
    """Runs the program with the parameters put elsewhere when an episode begins."""

    def __init__(
        self, stream: Stream, reporter: Reporter, measured: list[Measured], contents: list[Any]
    ) -> None:
        self.stream = stream
        self.pending = {m.episode.start: (m, c) for m, c in zip(measured, contents)}
        self.first = measured[0]
        self.reporter = reporter
        self.child: ObjectiveChild | None = None

    def before(self, event: Event) -> None:
        if event.name in self.pending:
            m, content = self.pending.pop(event.name)
            parameter = self.stream.births.live.get(m.episode.serial)
            if parameter is not None:
                memory = arrays.memory(parameter)
                memory[...] = content.reshape(memory.shape).astype(memory.dtype)
        if self.child is None and event.name == self.first.episode.start:
            parameter = self.stream.births.live.get(self.first.episode.serial)
            included = [True] * self.first.backwards
            self.child = ObjectiveChild(self.first.episode, parameter, self.reporter, [], included)
        if self.child is not None:
            self.child.before(event)

    def after(self, event: Event) -> None:
        if self.child is not None:
            self.child.after(event)

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave({"objective": float("nan")})


class Draws(Observer):
    """Whether random numbers are drawn between the first and the second backward call."""

    def __init__(self, stream: Stream, reporter: Reporter) -> None:
        self.reporter = reporter
        self.states: list[Any] = []
        self.seeds: list[set[tuple]] = [set()]

    def before(self, event: Event) -> None:
        if event.kind == "launch" and "rand_init" in getattr(event.details["object"].adj, "source", ""):
            given = (*event.details["inputs"], *event.details["outputs"])
            numbers = tuple(int(v) for v in given if isinstance(v, (int, np.integer)))
            self.seeds[-1].add((event.details["kernel"], numbers))
        elif event.kind == "backward":
            self.states.append(_states())
            self.seeds.append(set())
            if len(self.states) == 2:
                before, now = self.states
                drawn = any(now[key] != state for key, state in before.items() if key in now)
                self.reporter.leave(
                    {"drawn": drawn or bool(self.seeds[1] and self.seeds[0] != self.seeds[1])}
                )

    def finished(self, error: BaseException | None) -> None:
        self.reporter.leave({"drawn": False})


def _states() -> dict[Any, str]:
    """The state of every random generator that is alive."""
    found: dict[Any, str] = {"random": repr(random.getstate()), "numpy": repr(np.random.get_state())}
    for held in gc.get_objects():
        if isinstance(held, np.random.Generator):
            found[id(held)] = repr(held.bit_generator.state)
    return found


def follow(
    stream: Stream, run_user: Callable[[], None], measured: list[Measured], deadline: float
) -> dict[str, Any] | None:
    """The step from the first measured iteration to the second, if it tells something.

    ``before``, ``after``: the first iteration's objective at the old and at the new parameters;
    ``next``: the second iteration's objective at the new ones; ``drawn``: random numbers are.
    """
    first = [m for m in measured if m.iteration == 1]
    second = {m.episode.variable: m for m in measured if m.iteration == 2}
    pairs = [(m, second.get(m.episode.variable)) for m in first]
    known = all(
        m.outcome == judge.AGREES
        and o is not None
        and o.start is not None
        and np.shape(o.start) == np.shape(m.start)
        and all(b.kind == "loss" for b in m.episode.backwards)
        for m, o in pairs
    )
    if not first or not known:
        return None
    downhill = sum(float(np.sum(m.gradient * (o.start - m.start))) for m, o in pairs if o is not None)
    before, after_step = first[0].objective, pairs[0][1].objective if pairs[0][1] is not None else np.nan
    goes_down = after_step < before and abs(after_step - before) > 0.01 * abs(before)

    def value(contents: list[Any]) -> float:
        def work(reporter: Reporter) -> None:
            stream.observer = Moved(stream, reporter, first, contents)
            run_user()

        return float(run_in_child(work, deadline).get("objective", np.nan))

    def draws(reporter: Reporter) -> None:
        stream.observer = Draws(stream, reporter)
        run_user()

    try:
        drawn = bool(run_in_child(draws, deadline).get("drawn"))
        if goes_down and not drawn:
            return None  # nothing to explain
        here = value([m.start for m in first])
        if not _close(here, before):
            return None
        there = value([o.start for _, o in pairs if o is not None])
    except ChildFailure:
        return None
    return {
        "downhill": downhill < 0.0,
        "before": before,
        "after": there,
        "next": float(after_step),
        "same": _close(there, float(after_step)),
        "drawn": drawn,
    }


def _close(a: float, b: float) -> bool:
    return bool(abs(a - b) <= SAME * max(abs(a), abs(b)))
