"""The objective that the user named: finite differences of that number, not of what is differentiated."""

from __future__ import annotations

import dataclasses

from . import judge
from .figures import Figure, names
from .forks import ChildFailure
from .measure import Measured
from .reported import Reported, ReportRuns, judged_again

KINDS = ("array", "read", "frame", "local", "return", "print")
"""Where a number was met, the ones with all their digits first."""
SMALLEST_STEP = 1.0e-3
"""Displacement relative to the parameter's scale, at least."""


class Declared(ReportRuns):
    """Measures an episode again, against the number that bears the name."""

    def measure(self) -> Measured:
        """The same directions against the named number; a problem where there is no such number."""
        if self.measured.gradient is None or not self.measured.checks:
            return self.measured
        try:
            return self._measure()
        except ChildFailure as failure:
            return self._without(f"a run for probe.objective {failure.reason}")

    def _measure(self) -> Measured:
        shown = {key: Figure(*figure) for key, figure in self.run(None)["figures"].items()}
        found = {key: figure for key, figure in shown.items() if names(figure.name, self.named)}
        if not found:
            known = sorted({f.name for f in shown.values() if f.name.isidentifier()})
            has = f"; it shows {', '.join(known[:6])}" if known else ""
            return self._without(f"probe.objective: no number named `{self.named}`{has}")
        key, slopes = self.moving(found)
        if key is None:
            return self._without(
                f"probe.objective: `{self.named}` does not change with the parameter in this iteration"
            )
        figure = found[key]
        checks = []
        for name, check in self.measured.checks:
            t, vector = self.step(check), self.measured.vectors[name]
            near = (slopes.get(name) or self.along(vector, t)).get(key)
            far = self.along(vector, 4.0 * t).get(key)
            if near is None or far is None:
                return self._without(f"probe.objective: `{self.named}` is not shown in every run")
            checks.append((name, judged_again(check, near, far, figure.digit, t)))
        wrong = [check for _, check in checks if check.outcome == judge.DIFFERS]
        if len(wrong) == 1 and len(checks) > 1:
            wrong[0].outcome = "inconclusive: only one direction differs from the named objective"
        return dataclasses.replace(
            self.measured,
            checks=checks,
            problem=None,
            reported=Reported((), (), None, figure.name, figure.line, None, None),
        )

    def moving(self, found: dict[tuple, Figure]) -> tuple[tuple | None, dict[str, dict[tuple, float]]]:
        """The best of the numbers that change along some direction, and the slopes on the way there."""
        slopes: dict[str, dict[tuple, float]] = {}
        ranked = sorted(found, key=lambda key: KINDS.index(key[0]))
        for name, check in self.measured.checks:
            t = self.step(check)
            slopes[name] = self.along(self.measured.vectors[name], t)
            for key in ranked:
                if abs(slopes[name].get(key, 0.0)) * t > 4.0 * found[key].digit:
                    return key, slopes
        return None, slopes

    def step(self, check: judge.Judgement) -> float:
        return max(check.step, SMALLEST_STEP * self.measured.scale)

    def _without(self, reason: str) -> Measured:
        return dataclasses.replace(self.measured, problem=reason)
