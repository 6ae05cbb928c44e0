"""Is what the backward pass is seeded with the derivative of what the program reports?

A seed of ones makes the gradient that of the outputs' sum. If the number that the program itself
calls its loss is computed from the same outputs but is another function of them, the optimizer
follows something else than what is reported. Only constant seeds are judged: seeds that depend on
the outputs are a derivative that somebody took by hand. A number that the gradient does follow, or
a monotone function of it (a root mean square, a logarithm), clears the program at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays, judge
from .figures import Figure, Figures, is_objective_name
from .forks import ChildFailure, Reporter, run_in_child
from .hooks import Event, Observer, Stream
from .measure import Measured
from .objectives import seedable, seeds_of

STEP = 2.0e-2
"""Displacement of the seeded outputs, relative to their size."""
TOLERANCE = 0.03
LARGEST = 256
"""Seeded numbers up to which the derivative of a reported number is taken in full."""


@dataclasses.dataclass
class Reported:
    """A reported number whose derivative the seeds are not."""

    stack: tuple
    """Of the backward call that is seeded."""
    serial: tuple
    output: str | None
    name: str
    line: tuple
    derivative: Any
    """Of the reported number with respect to the seeded outputs: what the seeds ought to be."""
    factor: float | None
    """By how much the seeds are too large, if that is all."""


class ReportRun(Observer):
    """Runs the program up to the next version of the parameter and reports the numbers it shows."""

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        measured: Measured,
        displace: Any = None,
        named: str | None = None,
    ) -> None:
        self.stream = stream
        self.reporter = reporter
        self.episode = measured.episode
        self.displace = displace
        """(event name, array serial, displacement), or a displacement of the parameter."""
        self.figures = Figures(stream.sites, named)
        self.started = False
        self.writers: dict[int, tuple] = {}
        self.seeded: list[dict[str, Any]] = []

    def before(self, event: Event) -> None:
        if not self.started and event.name == self.episode.start:
            self.started = True
            if isinstance(self.displace, np.ndarray):
                self.move(self.episode.serial, self.displace)
            self.figures.open()
        elif self.started and event.name == self.episode.next_start:
            self.leave()
        if not self.started:
            return
        if event.kind == "launch" and event.recorded:
            event.details["outputs before"] = {
                id(b): (b, hash(arrays.content(b))) for b in (arrays.root(a) for _, a in event.arrays)
            }
        elif event.kind == "adjoint":
            self.seeded.append({"constant": False})
        elif event.kind == "backward":
            self.note_seeds(event)

    def after(self, event: Event) -> None:
        if not self.started:
            return
        if event.kind == "launch":
            for key, (base, digest) in event.details.pop("outputs before", {}).items():
                if hash(arrays.content(base)) != digest:
                    self.writers[key] = event.name
            if isinstance(self.displace, tuple) and event.name == self.displace[0]:
                self.move(self.displace[1], self.displace[2])
        elif event.kind == "read":
            self.figures.read(event)

    def move(self, serial: tuple, by: Any) -> None:
        memory = arrays.memory(self.stream.births.live[serial])
        memory[...] = (memory.astype(np.float64) + by.reshape(memory.shape)).astype(memory.dtype)

    def note_seeds(self, event: Event) -> None:
        if event.details.get("loss") is not None:
            self.seeded.append({"constant": False})
            return
        given, seeds = seedable(event), seeds_of(event, set(), frozenset())
        for position, seed in seeds.items():
            array = given[position]
            born = arrays.birth(array)
            self.seeded.append(
                {
                    "constant": bool(seed.size > 1 and seed.ravel()[0] != 0.0 and np.ptp(seed) == 0.0),
                    "seed": seed,
                    "values": arrays.values(array),
                    "serial": born.serial if born is not None else None,
                    "name": self.stream.sites.label(born.stack) if born is not None else None,
                    "writer": self.writers.get(id(arrays.root(array))),
                    "stack": self.seed_place(event, array) or event.stack,
                }
            )

    def seed_place(self, event: Event, array: Any) -> tuple:
        """Where the seeds were made: the array given in ``grads``, or what filled the gradient."""
        seed = (event.details.get("grads") or {}).get(array, array.grad)
        filled = arrays.reset_by(seed)
        if filled is not None and filled[0] in ("fill", "assign"):
            return filled[1]
        born = arrays.birth(arrays.root(seed))
        return born.stack if born is not None else ()

    def finished(self, error: BaseException | None) -> None:
        self.leave()

    def leave(self) -> None:
        self.figures.close()
        if self.figures.named is not None:
            self.figures.read_array(self.stream.births)
        found = {key: (f.value, f.name, f.digit, f.line) for key, f in self.figures.found.items()}
        self.reporter.leave({"figures": found, "seeded": self.seeded})


def judged_again(check: judge.Judgement, near: float, far: float, digit: float, t: float) -> judge.Judgement:
    """A check with the finite difference of a shown number, at the steps ``t`` and ``4 t``."""
    blur = abs(far - near) / 3.0 + 2.0 * digit / t
    signal = max(abs(near), abs(check.ad))
    differs = abs(check.ad - near) > max(2.0 * blur, 0.02 * signal)
    return dataclasses.replace(
        check,
        fd=near,
        uncertainty=blur,
        step=t,
        outcome=judge.DIFFERS if differs else judge.AGREES,
        signal=signal,
        one_sided=None,
    )


class ReportRuns:
    """Runs of the program for the numbers that it shows in one measured episode."""

    def __init__(
        self,
        stream: Stream,
        run_user: Callable[[], None],
        measured: Measured,
        deadline: float,
        named: str | None = None,
    ) -> None:
        self.stream = stream
        self.run_user = run_user
        self.measured = measured
        self.deadline = deadline
        self.named = named
        self.runs = 0

    def run(self, displace: Any) -> dict[str, Any]:
        """What one run shows, with the displacement of a ``ReportRun``; raises ``ChildFailure``."""
        self.runs += 1
        stream = self.stream

        def work(reporter: Reporter) -> None:
            stream.observer = ReportRun(stream, reporter, self.measured, displace, self.named)
            self.run_user()

        report = run_in_child(work, self.deadline)
        if "figures" not in report:
            raise ChildFailure("did not reach its report")
        return dict(report)

    def difference(self, displace: Callable[[float], Any], t: float) -> dict[tuple, float]:
        """Central differences of every number that both runs show."""
        high, low = (self.run(displace(s))["figures"] for s in (t, -t))
        return {key: (high[key][0] - low[key][0]) / (2.0 * t) for key in high if key in low}

    def along(self, vector: Any, t: float) -> dict[tuple, float]:
        """Derivatives of all numbers along a direction of the parameter."""
        return self.difference(lambda s: s * vector, t)


class Comparison(ReportRuns):
    """Compares the seeds of one measured episode with the numbers the program reports."""

    def compare(self) -> Measured | None:
        """The episode measured against the number that is reported, if the seeds are not its derivative."""
        try:
            return self._compare()
        except ChildFailure:
            return None

    def _compare(self) -> Measured | None:
        told = self.run(None)
        if len(told["seeded"]) != 1 or not told["seeded"][0]["constant"]:
            return None
        seeded = told["seeded"][0]
        if seeded["writer"] is None or seeded["serial"] is None:
            return None
        base = {key: Figure(*f) for key, f in told["figures"].items()}
        values, seed = seeded["values"], seeded["seed"]
        size = float(np.sqrt(np.mean(values**2))) or 1.0
        t = STEP * size
        rng = np.random.Generator(np.random.PCG64(7))
        directions = [np.ones(values.shape)] + [
            rng.choice(np.array([-1.0, 1.0]), size=values.shape) for _ in range(2)
        ]
        slopes = [self.slopes(seeded, v, t, base) for v in directions]
        total = float(np.sum(values * seed))
        chosen: tuple[tuple, float | None] | None = None
        for key, figure in base.items():
            kind, factor = self.relation(key, figure, slopes, directions, seed, t, total)
            if kind == "follows":
                return None
            named = kind in ("factor", "other") and is_objective_name(figure.name)
            if named and (chosen is None or figure.digit < base[chosen[0]].digit):
                chosen = (key, factor)
        if chosen is None or values.size > LARGEST:
            return None
        key, factor = chosen
        if factor is not None and not self.is_mean(factor, seed):
            return None
        derivative = self.derivative(seeded, key, t, base)
        return self.measure_again(seeded, key, base[key], derivative, factor)

    def is_mean(self, factor: float, seed: Any) -> bool:
        """Whether seeds of one stand for a mean: any other factor may be meant."""
        entries = {float(seed.size), float(seed.shape[0])}
        return bool(seed.ravel()[0] == 1.0) and any(abs(factor * n - 1.0) < TOLERANCE for n in entries)

    def relation(
        self,
        key: tuple,
        figure: Figure,
        slopes: list[dict[tuple, float]],
        directions: list[Any],
        seed: Any,
        t: float,
        total: float,
    ) -> tuple[str, float | None]:
        """What a number is to the seeded sum: follows, factor, other or nothing."""
        if not all(key in s for s in slopes):
            return "nothing", None
        blur = figure.digit / t
        found = [s[key] for s in slopes]
        if max(map(abs, found)) <= 8.0 * blur:
            return "nothing", None
        along = [float(np.sum(seed * v)) for v in directions]
        factor = found[0] / along[0]
        typical = max(abs(factor * float(seed.ravel()[0])) * np.sqrt(seed.size), max(map(abs, found[1:])))
        parallel = all(
            abs(f - factor * a) <= TOLERANCE * typical + 4.0 * blur for f, a in zip(found[1:], along[1:])
        )
        if not parallel:
            return "other", None
        linear = total != 0.0 and abs(figure.value / total - factor) <= TOLERANCE * abs(factor)
        if not linear or abs(factor - 1.0) <= TOLERANCE or factor < 0.0:
            return "follows", None
        return "factor", factor

    def slopes(self, seeded: dict[str, Any], v: Any, t: float, base: Any) -> dict[tuple, float]:
        return self.difference(lambda s: (seeded["writer"], seeded["serial"], s * v), t)

    def derivative(self, seeded: dict[str, Any], key: tuple, t: float, base: Any) -> Any:
        found = np.zeros(seeded["values"].size)
        for index in range(found.size):
            v = np.zeros(found.size)
            v[index] = 1.0
            slope = self.slopes(seeded, v.reshape(seeded["values"].shape), t, base)
            found[index] = slope.get(key, float("nan"))
        return found.reshape(seeded["values"].shape)

    def measure_again(
        self, seeded: dict[str, Any], key: tuple, figure: Figure, derivative: Any, factor: float | None
    ) -> Measured | None:
        """The same directions, with finite differences of the reported number."""
        if not np.all(np.isfinite(derivative)):
            return None
        measured = self.measured
        checks = []
        for name, check in measured.checks:
            if check.outcome != judge.AGREES:
                continue
            vector = measured.vectors[name]
            t = max(check.step, 1.0e-3 * measured.scale)
            near = self.along(vector, t).get(key)
            far = self.along(vector, 4.0 * t).get(key)
            if near is None or far is None:
                return None
            checks.append((name, judged_again(check, near, far, figure.digit, t)))
        wrong = sum(c.outcome == judge.DIFFERS for _, c in checks)
        if wrong < min(2, int(np.size(measured.start))):
            return None
        reported = Reported(
            seeded["stack"],
            seeded["serial"],
            seeded["name"],
            figure.name,
            figure.line,
            derivative,
            factor,
        )
        return dataclasses.replace(measured, checks=checks, reported=reported)
