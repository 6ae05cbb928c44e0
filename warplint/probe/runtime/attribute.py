"""Which cause makes the gradient wrong: counterfactual runs and the minimal set.

A cause is confirmed when it belongs to a minimal set whose joint removal brings the consumed
gradient within noise of the finite difference, while putting it back alone brings the error
back. Removal happens at run time, in a fresh run of the unchanged program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import judge
from .causes import KINDS, CounterfactualRun, Kind
from .causes.base import projected
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Stream
from .measure import Measured

SINGLES = 6
"""Causes tried alone before the search turns to sets."""
RESOLVED = 2.0e-3
"""Share of the signal below which a removal is taken to have brought AD to FD."""
EARLY = tuple(kind for kind in KINDS if not kind.LATE)
ORDER = tuple(kind.NAME for kind in KINDS)


@dataclass
class Attribution:
    """The outcome of the search for one measured episode."""

    causes: list[dict[str, Any]] = field(default_factory=list)
    """Every cause that was seen at work in the episode, whether it matters or not."""
    confirmed: list[dict[str, Any]] = field(default_factory=list)
    """Per cause: key, alone, leave_one_out, resolved error."""
    before: float = 0.0
    after: float | None = None
    """Relative error with the whole set removed (or with everything removed, unresolved)."""
    resolved: bool = False
    held: dict[str, dict[str, float]] = field(default_factory=dict)
    """Per direction: the finite difference without what the set adds, and the error against it."""
    runs: int = 0
    changed: bool = False
    """Whether putting all values back changed the consumed gradient at all."""
    problem: str | None = None


class Attributor:
    """Runs counterfactuals for one measured episode."""

    def __init__(
        self,
        stream: Stream,
        run_user: Callable[[], None],
        measured: Measured,
        deadline: float,
        preferred: Callable[[dict[str, Any]], bool],
        together: list[Measured],
        known: frozenset = frozenset(),
        likely: Sequence[str] = (),
    ) -> None:
        self.stream = stream
        self.run_user = run_user
        self.measured = measured
        self.deadline = deadline
        self.preferred = preferred
        self.known = known
        """Causes that explain an earlier iteration: what they explain here too needs no search."""
        self.order = {name: number for number, name in enumerate(dict.fromkeys([*likely, *ORDER]))}
        """Kinds in the order in which they are tried: first what the numbers point at."""
        self.result = Attribution()
        self.pinned: dict[tuple, list] = {}
        for other in together:
            if other.start is not None and other.iteration == measured.iteration:
                self.pinned.setdefault(other.episode.start, []).append((other.episode, other.start))
        self.kinds = EARLY
        self.plain: dict[str, Any] = {}
        self.cache: dict[frozenset, list[tuple[float, bool]]] = {}
        self.reports: dict[frozenset, dict[str, Any]] = {}

    def search(self) -> Attribution:
        """Finds a minimal set of causes, if the known ones explain the difference."""
        result = self.result
        try:
            self._search()
        except ChildFailure as failure:
            result.problem = failure.reason
        except TimeoutError:
            result.problem = "the time limit was reached"
        return result

    def _search(self) -> None:
        if self.measured.outcome != judge.DIFFERS:
            self.look(EARLY)
            everything = frozenset(c["key"] for c in self.result.causes)
            if everything:
                report = self.run(everything, EARLY)
                self.result.changed = not _same(report["gradient"], self.plain["gradient"])
            return
        for kinds in dict.fromkeys((EARLY, KINDS)):
            self.explain(kinds)
            if self.result.resolved or self.result.problem:
                return

    def look(self, kinds: tuple[type[Kind], ...]) -> None:
        """An unchanged run that reports the causes at work."""
        self.kinds = kinds
        self.plain = self.run(frozenset(), kinds)
        self.result.causes = self.plain["extra"]["causes"]

    def explain(self, kinds: tuple[type[Kind], ...]) -> None:
        """Looks for a minimal set of causes of these kinds."""
        result = self.result
        self.look(kinds)
        self.cache.clear()
        self.cache[frozenset()] = self.compare(self.plain)
        result.before = self.error_of(frozenset())
        if not result.causes:
            return
        by_key = {c["key"]: c for c in result.causes}
        everything = frozenset(by_key)
        if self.is_resolved(frozenset()):
            result.problem = "the difference does not show in a run from the start"
            return
        final = self.minimal(by_key, everything)
        if final is None:
            result.after = self.error_of(everything)
            return
        result.resolved = True
        result.after = self.error_of(final)
        result.held = self.without(final)
        for key in sorted(final, key=lambda k: self.rank(by_key[k])):
            alone = self.error_of(frozenset({key}))
            others = self.error_of(final - {key})
            result.confirmed.append({**by_key[key], "alone": alone, "leave_one_out": others})

    def without(self, keys: frozenset) -> dict[str, dict[str, float]]:
        """The finite differences as they would be if the causes were no part of the objective.

        Where a path is cut on purpose, autodiff is right about everything else.
        """
        report, found = self.reports[keys], {}
        for name, check in self.measured.checks:
            if check.outcome == judge.DIFFERS:
                fd = check.fd - (projected(report, name, self.measured.vectors[name]) - check.ad)
                error = abs(check.ad - fd) / max(abs(check.ad), abs(check.fd))
                found[name] = {"fd": fd, "relative_error": error}
        return found

    def minimal(self, by_key: dict[tuple, dict[str, Any]], everything: frozenset) -> frozenset | None:
        """A set of causes whose joint removal resolves the difference and of which none can stay.

        Most wrong gradients have one cause: what the static pass points at is tried first,
        then each cause alone, then all together with one put back at a time.
        """
        ranked = sorted(by_key, key=lambda k: self.rank(by_key[k]))
        pointed = frozenset(k for k in ranked if self.preferred(by_key[k]))
        singles = [frozenset({k}) for k in ranked[:SINGLES]]
        first = [c for c in (self.known & everything, pointed) if c]
        for candidate in [*first, *singles]:
            if self.is_resolved(candidate):
                return self.reduced(candidate, ranked)
        if not self.is_resolved(everything):
            return None
        return self.reduced(everything, ranked)

    def reduced(self, keys: frozenset, ranked: list[tuple]) -> frozenset:
        kept = set(keys)
        for key in reversed(ranked):
            if key in kept and len(kept) > 1 and self.is_resolved(frozenset(kept - {key})):
                kept.discard(key)
        return frozenset(kept)

    def rank(self, cause: dict[str, Any]) -> tuple:
        """Likeliest first: what the static pass points at, then what the numbers do (``signatures``),
        then values that other launches read before own outputs."""
        foreign = sum(not r["own"] for r in cause.get("readers", ()))
        return (
            not self.preferred(cause),
            self.order[cause["key"][0]],
            "adjoint" not in cause.get("what", ()),
            foreign == 0,
            -cause.get("count", 0),
            repr(cause["key"]),
        )

    # -- runs ----------------------------------------------------------------------------

    def run(self, removed: frozenset, kinds: tuple[type[Kind], ...]) -> dict[str, Any]:
        if time.monotonic() > self.deadline:
            raise TimeoutError
        self.result.runs += 1
        stream = self.stream

        def work(reporter: Reporter) -> None:
            stream.observer = CounterfactualRun(
                stream, reporter, self.measured, removed, self.pinned, kinds, self.deadline
            )
            self.run_user()

        report = run_in_child(work, self.deadline)
        if report.get("gradient") is None:
            raise ChildFailure(
                f"a counterfactual run did not reach the gradient's use ({report.get('error')})"
            )
        return report

    def comparison(self, keys: frozenset) -> list[tuple[float, bool]]:
        if keys not in self.cache:
            self.reports[keys] = self.run(keys, self.kinds)
            self.cache[keys] = self.compare(self.reports[keys])
        return self.cache[keys]

    def error_of(self, keys: frozenset) -> float:
        return max((error for error, _ in self.comparison(keys)), default=0.0)

    def is_resolved(self, keys: frozenset) -> bool:
        return all(within for _, within in self.comparison(keys))

    def compare(self, report: dict[str, Any]) -> list[tuple[float, bool]]:
        """Per direction: relative error, and whether it is within noise."""
        found = []
        for name, check in self.measured.checks:
            if not (check.outcome == judge.DIFFERS or check.outcome == judge.AGREES):
                continue
            ad = projected(report, name, self.measured.vectors[name])
            signal = max(abs(check.fd), check.signal if check.outcome == judge.AGREES else 0.0)
            allowed = max(2.0 * check.uncertainty, RESOLVED * signal)
            allowed += 4.0 * self.measured.adjoint_noise
            if check.outcome == judge.DIFFERS and np.isfinite(check.ad):
                # However noisy: a removal that leaves much of the difference explains nothing.
                allowed = min(allowed, 0.25 * abs(check.ad - check.fd))
            difference = abs(ad - check.fd)
            if check.one_sided is not None:
                # At a kink every slope between the one-sided ones is a valid derivative.
                low, high = min(check.one_sided), max(check.one_sided)
                difference = min(difference, max(low - ad, ad - high, 0.0))
            error = judge.relative_error(ad, check.fd, check.uncertainty)
            if check.fd == 0.0 and ad == 0.0:
                error = 0.0
            found.append((error, bool(difference <= allowed)))
        return found


def _same(a: Any, b: Any) -> bool:
    return a is not None and b is not None and np.array_equal(a, b, equal_nan=True)
