"""The objective that the user named: finite differences of that number, not of what is differentiated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from . import judge
from .figures import Figure, names
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Stream
from .measure import Measured
from .reported import Reported, ReportRun, judged_again

KINDS = ("array", "read", "frame", "local", "return", "print")
"""Where a number was met, the ones with all their digits first."""
SMALLEST_STEP = 1.0e-3
"""Displacement relative to the parameter's scale, at least."""


class Declared:
    """Measures episodes again, against the number that bears ``name``."""

    def __init__(self, stream: Stream, run_user: Callable[[], None], name: str, deadline: float) -> None:
        self.stream = stream
        self.run_user = run_user
        self.name = name
        self.deadline = deadline
        self.runs = 0

    def measure(self, measured: Measured) -> Measured:
        """The same directions against the named number; a problem where there is no such number."""
        if measured.gradient is None or not measured.checks:
            return measured
        try:
            return self._measure(measured)
        except ChildFailure as failure:
            return self._without(measured, f"a run for probe.objective {failure.reason}")

    def _measure(self, measured: Measured) -> Measured:
        shown = self.run(measured, None)
        found = {key: figure for key, figure in shown.items() if names(figure.name, self.name)}
        if not found:
            known = sorted({f.name for f in shown.values() if f.name.isidentifier()})
            has = f"; it shows {', '.join(known[:6])}" if known else ""
            return self._without(measured, f"probe.objective: no number named `{self.name}`{has}")
        key, slopes = self.moving(measured, found)
        if key is None:
            reason = f"probe.objective: `{self.name}` does not change with the parameter in this iteration"
            return self._without(measured, reason)
        figure = found[key]
        checks = []
        for name, check in measured.checks:
            t = self.step(measured, check)
            near, far = slopes.get(name), self.along(measured, name, 4.0 * t).get(key)
            if near is None:
                near = self.along(measured, name, t)
                slopes[name] = near
            if key not in near or far is None:
                return self._without(measured, f"probe.objective: `{self.name}` is not shown in every run")
            checks.append((name, judged_again(check, near[key], far, figure.digit, t)))
        wrong = [check for _, check in checks if check.outcome == judge.DIFFERS]
        if len(wrong) == 1 and len(checks) > 1:
            wrong[0].outcome = "inconclusive: only one direction differs from the named objective"
        return dataclasses.replace(
            measured,
            checks=checks,
            problem=None,
            reported=Reported((), (), None, figure.name, figure.line, None, None),
        )

    def moving(
        self, measured: Measured, found: dict[tuple, Figure]
    ) -> tuple[tuple | None, dict[str, dict[tuple, float]]]:
        """The best of the numbers that change along some direction, and the slopes on the way there."""
        slopes: dict[str, dict[tuple, float]] = {}
        ranked = sorted(found, key=lambda key: KINDS.index(key[0]))
        for name, check in measured.checks:
            t = self.step(measured, check)
            slopes[name] = self.along(measured, name, t)
            for key in ranked:
                if abs(slopes[name].get(key, 0.0)) * t > 4.0 * found[key].digit:
                    return key, slopes
        return None, slopes

    def step(self, measured: Measured, check: judge.Judgement) -> float:
        return max(check.step, SMALLEST_STEP * measured.scale)

    def along(self, measured: Measured, direction: str, t: float) -> dict[tuple, float]:
        """Central differences along a direction of the parameter, of every number both runs show."""
        vector = measured.vectors[direction]
        high, low = (self.run(measured, s * vector) for s in (t, -t))
        return {key: (high[key].value - low[key].value) / (2.0 * t) for key in high if key in low}

    def run(self, measured: Measured, displacement: Any) -> dict[tuple, Figure]:
        """The numbers that one run shows between this version of the parameter and the next."""
        self.runs += 1
        stream = self.stream

        def work(reporter: Reporter) -> None:
            stream.observer = ReportRun(stream, reporter, measured, displacement, self.name)
            self.run_user()

        report = run_in_child(work, self.deadline)
        if "figures" not in report:
            raise ChildFailure("did not reach the end of the iteration")
        return {key: Figure(*figure) for key, figure in report["figures"].items()}

    def _without(self, measured: Measured, reason: str) -> Measured:
        return dataclasses.replace(measured, problem=reason)
