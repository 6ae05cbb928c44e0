"""Which cause makes the gradient wrong: counterfactual runs and the minimal set.

A cause is confirmed when it belongs to a minimal set whose joint removal brings the consumed
gradient within noise of the finite difference, while putting it back alone brings the error
back. Removal happens at run time, in a fresh run of the unchanged program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import arrays, judge
from .episodes import GradientChild
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Event, Observer, Stream
from .measure import Measured
from .scout import Episode
from .snapshots import Snapshots

SINGLES = 6
"""Causes tried alone before the search turns to sets."""
RESOLVED = 2.0e-3
"""Share of the signal below which a removal is taken to have brought AD to FD."""


class CounterfactualRun(Observer):
    """Runs the program from its start with causes taken away, up to the gradient's use."""

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        episode: Episode,
        removed: frozenset,
        pinned: dict[tuple, list],
    ) -> None:
        self.stream = stream
        self.reporter = reporter
        self.episode = episode
        self.pinned = pinned
        self.snapshots = Snapshots(stream, removed.__contains__)
        self.inner: GradientChild | None = None
        self.produced: dict[int, Any] = {}
        self.without_gradient: dict[tuple, dict[str, Any]] = {}

    def before(self, event: Event) -> None:
        if self.inner is None and event.name == self.episode.start:
            parameter = self.stream.births.live.get(self.episode.serial)
            self.inner = GradientChild(self.episode, parameter, self.reporter, extra=self.facts)
            self.snapshots.active = True
        self.pin(event)
        self.watch_before(event)
        self.snapshots.before(event)
        if self.inner is not None:
            self.inner.before(event)

    def pin(self, event: Event) -> None:
        """Gives parameters the content the measured run had: a cause taken away earlier may
        have changed what the optimizer made of them since."""
        for episode, content in self.pinned.get(event.name, ()):
            parameter = self.stream.births.live.get(episode.serial)
            if parameter is not None:
                memory = arrays.memory(parameter)
                memory[...] = content.reshape(memory.shape).astype(memory.dtype)

    def after(self, event: Event) -> None:
        self.snapshots.after(event)
        self.watch_after(event)
        if self.inner is not None:
            self.inner.after(event)

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        return self.snapshots.around_adjoint(call, run)

    def finished(self, error: BaseException | None) -> None:
        if self.inner is not None:
            self.inner.finished(error)
        self.reporter.leave({"gradient": None, "error": f"{error}", "extra": self.facts(), "objectives": []})

    def facts(self) -> dict[str, Any]:
        return {
            "hazards": list(self.snapshots.hazards.values()),
            "without_gradient": list(self.without_gradient.values()),
            "exhausted": self.snapshots.exhausted,
        }

    # -- arrays on the path that carry no gradient ---------------------------------------

    def watch_before(self, event: Event) -> None:
        if self.inner is None or event.kind != "launch" or event.tape is None:
            return
        digests = {}
        for label, array in event.arrays:
            base = arrays.root(array)
            if array.requires_grad or not arrays.is_float(array) or arrays.gradient_owner(base) is not None:
                continue
            if id(base) in self.produced and event.recorded:
                self.note(base, event, label)
            digests[id(base)] = (base, hash(arrays.content(base)))
        event.details["plain"] = digests

    def watch_after(self, event: Event) -> None:
        if self.inner is None or event.tape is None:
            return
        if event.kind == "launch":
            for key, (base, digest) in event.details.pop("plain", {}).items():
                if hash(arrays.content(base)) != digest:
                    self.produced.setdefault(key, (base, event.stack, event.details["kernel"]))
        elif event.kind in ("copy", "assign") and event.source is not None:
            base = arrays.root(event.target)
            if arrays.is_array(base) and not base.requires_grad and arrays.is_float(base):
                self.produced.setdefault(id(base), (base, event.stack, event.kind))

    def note(self, base: Any, event: Event, label: str) -> None:
        born = arrays.birth(base)
        if born is None or born.family in self.without_gradient:
            return
        _, writer_stack, writer = self.produced[id(base)]
        self.without_gradient[born.family] = {
            "key": ("no-gradient", born.family),
            "family": born.family,
            "stack": born.stack,
            "buffer": self.stream.sites.label(born.stack),
            "writer": {"stack": writer_stack, "kernel": writer},
            "reader": {"stack": event.stack, "kernel": event.details["kernel"], "argument": label},
        }


@dataclass
class Attribution:
    """The outcome of the search for one measured episode."""

    hazards: list[dict[str, Any]] = field(default_factory=list)
    without_gradient: list[dict[str, Any]] = field(default_factory=list)
    confirmed: list[dict[str, Any]] = field(default_factory=list)
    """Per cause: key, alone, leave_one_out, resolved error."""
    before: float = 0.0
    after: float | None = None
    """Relative error with the whole set removed (or with everything removed, unresolved)."""
    resolved: bool = False
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
    ) -> None:
        self.stream = stream
        self.run_user = run_user
        self.measured = measured
        self.deadline = deadline
        self.preferred = preferred
        self.result = Attribution()
        self.pinned: dict[tuple, list] = {}
        for other in together:
            if other.start is not None and other.iteration == measured.iteration:
                self.pinned.setdefault(other.episode.start, []).append((other.episode, other.start))
        self.cache: dict[frozenset, list[tuple[float, bool]]] = {}

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
        result = self.result
        plain = self.run(frozenset(), frozenset())
        facts = plain["extra"]
        result.hazards = facts["hazards"]
        result.without_gradient = facts["without_gradient"]
        result.before = self.error(plain["gradient"])
        causes = [*result.hazards, *result.without_gradient]
        if not causes:
            return
        by_key = {c["key"]: c for c in causes}
        everything = frozenset(by_key)
        if self.measured.outcome != judge.DIFFERS:
            report = self.run_keys(everything)
            result.changed = not _same(report["gradient"], plain["gradient"])
            return
        self.cache[frozenset()] = self.compare(plain["gradient"])
        if self.is_resolved(frozenset()):
            result.problem = "the difference does not show in a run from the start"
            return
        final = self.minimal(by_key, everything)
        if final is None:
            result.after = self.error_of(everything)
            return
        result.resolved = True
        result.after = self.error_of(final)
        for key in sorted(final, key=repr):
            alone = self.error_of(frozenset({key}))
            others = self.error_of(final - {key})
            result.confirmed.append({**by_key[key], "alone": alone, "leave_one_out": others})

    def minimal(self, by_key: dict[tuple, dict[str, Any]], everything: frozenset) -> frozenset | None:
        """A set of causes whose joint removal resolves the difference and of which none can stay.

        Most wrong gradients have one cause: what the static pass points at is tried first,
        then each cause alone, then all together with one put back at a time.
        """
        ranked = sorted(by_key, key=lambda k: self.rank(by_key[k]))
        pointed = frozenset(k for k in ranked if self.preferred(by_key[k]))
        singles = [frozenset({k}) for k in ranked[:SINGLES]]
        for candidate in [pointed, *singles] if pointed else singles:
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
        """Likeliest first: pointed at, cut paths, values other launches read, then own outputs."""
        foreign = sum(not r["own"] for r in cause.get("readers", ()))
        return (
            not self.preferred(cause),
            cause["key"][0] != "no-gradient",
            "adjoint" not in cause.get("what", ()),
            foreign == 0,
            -cause.get("count", 0),
            repr(cause["key"]),
        )

    # -- runs ----------------------------------------------------------------------------

    def run_keys(self, keys: frozenset) -> dict[str, Any]:
        restored = frozenset(k for k in keys if k[0] == "overwrite")
        forced = frozenset(k[1] for k in keys if k[0] == "no-gradient")
        return self.run(restored, forced)

    def run(self, restored: frozenset, forced: frozenset) -> dict[str, Any]:
        if time.monotonic() > self.deadline:
            raise TimeoutError
        self.result.runs += 1
        stream = self.stream

        def work(reporter: Reporter) -> None:
            stream.forced_gradients = forced
            stream.observer = CounterfactualRun(
                stream, reporter, self.measured.episode, restored, self.pinned
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
            self.cache[keys] = self.compare(self.run_keys(keys)["gradient"])
        return self.cache[keys]

    def error_of(self, keys: frozenset) -> float:
        return max((error for error, _ in self.comparison(keys)), default=0.0)

    def is_resolved(self, keys: frozenset) -> bool:
        return all(within for _, within in self.comparison(keys))

    def error(self, gradient: Any) -> float:
        """Largest relative error over the compared directions, for a consumed gradient."""
        return max((e for e, _ in self.compare(gradient)), default=0.0)

    def compare(self, gradient: Any) -> list[tuple[float, bool]]:
        """Per direction: relative error, and whether it is within noise."""
        found = []
        for name, check in self.measured.checks:
            if not (check.outcome == judge.DIFFERS or check.outcome == judge.AGREES):
                continue
            vector = self.measured.vectors[name]
            with np.errstate(all="ignore"):
                ad = float(np.sum(np.reshape(gradient, vector.shape) * vector))
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
