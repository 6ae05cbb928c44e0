"""A finite difference that can be trusted in float32: noise, step ladder, kinks, three values.

Everything here is arithmetic on an objective that can be evaluated along a line; nothing knows
of Warp. Noise is estimated from a difference table of equally spaced evaluations (ECnoise,
Moré & Wild, "Estimating Computational Noise", SIAM J. Sci. Comput. 33, 2011). The uncertainty
of a central difference D at step h is

    U(h) = K * sigma / (sqrt(2) * h) + |D(h) - D(h')|,     h' the next larger step,

and the step with the smallest U is the one that is judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

AGREES = "agrees"
DIFFERS = "differs"

CONFIDENCE = 4.0
"""K: standard deviations of evaluation noise that a difference has to exceed."""
POWER = 0.05
"""Agreement is only claimed where the uncertainty is at most this share of the signal."""
FLOOR = 1.0e-3
"""Differences below this share of the signal are never called wrong."""
INERT = 0.01
"""A zero derivative is claimed where U is at most this share of the objective's scale."""

LADDER = tuple(10.0 ** (-k / 2.0) for k in range(0, 11))
"""Step sizes relative to the parameter's scale, largest first: 1, 0.32, 0.1 … 1e-5."""
FIRST = 4
"""Index of the step to begin with (1e-2)."""


@dataclass
class Line:
    """The objective along one direction: ``at(t)`` is the objective of ``x + t*d``.

    ``slope(t)`` is the consumed gradient's prediction of ``(f(x+td) - f(x-td)) / 2t`` from the
    parameter values actually taken (rounded to the parameter's precision).
    """

    at: Callable[[float], float]
    slope: Callable[[float], float]
    scale: float
    base: float
    resolution: float
    """Relative spacing of the numbers the objective is stored in (2**-23 for float32)."""
    adjoint_rounding: float = 0.0
    """Rounding error of the inner product of gradient and direction."""
    _cache: dict[float, float] = field(default_factory=dict)

    def value(self, t: float) -> float:
        if t == 0.0:
            return self.base
        if t not in self._cache:
            self._cache[t] = self.at(t)
        return self._cache[t]


@dataclass
class Judgement:
    """The comparison along one direction."""

    outcome: str
    ad: float
    fd: float
    uncertainty: float
    step: float
    sigma: float
    signal: float
    one_sided: tuple[float, float] | None = None

    @property
    def relative_error(self) -> float:
        return relative_error(self.ad, self.fd, self.uncertainty)


def relative_error(ad: float, fd: float, uncertainty: float = 0.0) -> float:
    """|ad - fd| relative to the finite difference (to the larger of both where it vanishes)."""
    if not math.isfinite(ad) or not math.isfinite(fd):
        return math.inf
    size = abs(fd) if abs(fd) > uncertainty else max(abs(ad), abs(fd))
    return abs(ad - fd) / size if size > 0.0 else 0.0


def noise_level(values: list[float]) -> float:
    """ECnoise: the standard deviation of evaluation noise from equally spaced values."""
    table = np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(table)):
        return math.nan
    levels = []
    changes = []
    gamma = 1.0
    for k in range(1, len(values)):
        table = np.diff(table)
        gamma *= 0.5 * k / (2.0 * k - 1.0)
        levels.append(math.sqrt(gamma * float(np.mean(table**2))))
        changes.append(bool(np.min(table) * np.max(table) < 0.0))
    for k in range(len(levels) - 2):
        window = levels[k : k + 3]
        if min(window) > 0.0 and max(window) <= 4.0 * min(window) and changes[k]:
            return levels[k]
    # No three levels agree: the last ones hold the least of the function itself.
    return min(levels[-3:])


def measure_noise(line: Line, spacing: float) -> float:
    """Noise of the objective near the base point, at least its rounding error."""
    points = [line.value(i * spacing) for i in (-3, -2, -1, 0, 1, 2, 3)]
    level = noise_level(points)
    rounding = abs(line.base) * line.resolution / math.sqrt(12.0)
    if not math.isfinite(level):
        return rounding
    return max(level, rounding)


@dataclass
class _Step:
    h: float
    ad: float
    fd: float
    noise: float
    uncertainty: float = math.inf


def judge(line: Line, sigma: float, *, thorough: bool = True) -> Judgement:
    """Compares autodiff with finite differences along ``line``, adaptively.

    Begins with two steps and stops as soon as they agree with the gradient; goes on over the
    ladder while the answer is in doubt.
    """
    steps: dict[int, _Step] = {}

    def take(index: int) -> _Step | None:
        if not 0 <= index < len(LADDER):
            return None
        if index not in steps:
            h = LADDER[index] * line.scale
            high, low = line.value(h), line.value(-h)
            fd = (high - low) / (2.0 * h)
            rounding = line.resolution * max(abs(high), abs(low)) / math.sqrt(12.0)
            spread = max(sigma, rounding) if math.isfinite(rounding) else sigma
            steps[index] = _Step(h, line.slope(h), fd, CONFIDENCE * spread / (math.sqrt(2.0) * h))
        return steps[index]

    def refresh() -> None:
        for index, step in steps.items():
            larger = steps.get(index - 1)
            if larger is None or not math.isfinite(larger.fd) or not math.isfinite(step.fd):
                step.uncertainty = math.inf
            else:
                step.uncertainty = step.noise + abs(step.fd - larger.fd)

    def best() -> _Step:
        refresh()
        return min(steps.values(), key=lambda s: (s.uncertainty, s.h))

    take(FIRST)
    take(FIRST + 1)
    chosen = best()
    if _agrees(chosen, line):
        return _judgement(AGREES, chosen, sigma)

    # In doubt: smaller steps while truncation dominates, larger ones while noise does.
    down, up = FIRST + 2, FIRST - 1
    while thorough and (down < len(LADDER) or up >= 0):
        refresh()
        step = best()
        truncation_dominates = step.uncertainty > 2.0 * step.noise
        if (truncation_dominates and down < len(LADDER)) or up < 0:
            take(down)
            down += 1
        else:
            take(up)
            up -= 1
        chosen = best()
        if _agrees(chosen, line):
            return _judgement(AGREES, chosen, sigma)
        if len(steps) >= 5 and _plateau(steps, chosen):
            break

    chosen = best()
    if not math.isfinite(chosen.uncertainty):
        return _judgement("inconclusive: the objective is not finite nearby", chosen, sigma)
    return _decide(steps, chosen, line, sigma)


def _tolerance(step: _Step, line: Line) -> float:
    return step.uncertainty + line.adjoint_rounding


def _agrees(step: _Step, line: Line) -> bool:
    signal = max(abs(step.ad), abs(step.fd))
    if not math.isfinite(step.ad) or not math.isfinite(step.uncertainty):
        return False
    close = abs(step.ad - step.fd) <= max(_tolerance(step, line), FLOOR * signal)
    if signal == 0.0:
        return _inert(step, line)
    return close and step.uncertainty <= POWER * signal


def _inert(step: _Step, line: Line) -> bool:
    return step.uncertainty * line.scale <= INERT * max(abs(line.base), 1e-30)


def _plateau(steps: dict[int, _Step], chosen: _Step) -> bool:
    """Three consecutive steps that tell the same derivative, well apart from autodiff."""
    gap = abs(chosen.ad - chosen.fd)
    index = next(i for i, s in steps.items() if s is chosen)
    for start in (index - 2, index - 1, index):
        window = [steps.get(i) for i in range(start, start + 3)]
        if all(
            s is not None
            and math.isfinite(s.fd)
            and abs(s.fd - chosen.fd) <= 0.25 * gap
            and s.noise <= 0.25 * gap
            for s in window
        ):
            return True
    return False


def _decide(steps: dict[int, _Step], chosen: _Step, line: Line, sigma: float) -> Judgement:
    ad, fd, uncertainty = chosen.ad, chosen.fd, chosen.uncertainty
    forward = (line.value(chosen.h) - line.base) / chosen.h
    backward = (line.base - line.value(-chosen.h)) / chosen.h
    sides = (backward, forward)

    if not math.isfinite(ad):
        signal = abs(fd)
        if uncertainty <= POWER * signal or _inert(chosen, line):
            return _judgement(DIFFERS, chosen, sigma, sides)
        return _judgement("inconclusive: noise", chosen, sigma, sides)

    signal = max(abs(ad), abs(fd))
    difference = abs(ad - fd)
    if difference <= max(_tolerance(chosen, line), FLOOR * signal):
        if uncertainty <= POWER * signal:
            return _judgement(AGREES, chosen, sigma, sides)
        if signal <= uncertainty and _inert(chosen, line):
            return _judgement(AGREES, chosen, sigma, sides)
        return _judgement(_why_weak(steps, line), chosen, sigma, sides)

    # A difference stands. It may be a kink: then the one-sided slopes do not meet.
    margin = chosen.noise * 2.0
    low, high = min(sides) - margin, max(sides) + margin
    if low <= ad <= high and abs(forward - backward) > 0.5 * difference:
        finer = _finer(steps, chosen)
        if finer is None or _gap(line, finer.h) > 0.6 * abs(forward - backward):
            return _judgement("inconclusive: kink, the one-sided slopes disagree", chosen, sigma, sides)
    if not _plateau(steps, chosen):
        return _judgement(_why_weak(steps, line), chosen, sigma, sides)
    return _judgement(DIFFERS, chosen, sigma, sides)


def _finer(steps: dict[int, _Step], chosen: _Step) -> _Step | None:
    smaller = [s for s in steps.values() if s.h < chosen.h and s.noise <= abs(s.ad - s.fd)]
    return max(smaller, key=lambda s: s.h) if smaller else None


def _gap(line: Line, h: float) -> float:
    forward = (line.value(h) - line.base) / h
    backward = (line.base - line.value(-h)) / h
    return abs(forward - backward)


def _why_weak(steps: dict[int, _Step], line: Line) -> str:
    """Names why no step gives a derivative worth comparing."""
    ordered = [s for _, s in sorted(steps.items())]
    finite = [s for s in ordered if math.isfinite(s.fd)]
    if not finite:
        return "inconclusive: the objective is not finite nearby"
    small = finite[-1]
    if all(s.fd == 0.0 for s in finite[-2:]) and any(abs(s.fd) > s.noise for s in finite[:2]):
        return "inconclusive: staircase, flat at small steps and secants at large ones"
    ulp = abs(line.base) * line.resolution
    change = max(abs(s.fd) * s.h for s in finite)
    if change < 20.0 * ulp:
        return "inconclusive: quantised, the objective's last digit exceeds its change"
    spread = [abs(a.fd - b.fd) for a, b in zip(finite, finite[1:])]
    signal = max(abs(s.fd) for s in finite)
    if spread and min(spread) > 0.2 * signal and small.noise < 0.2 * signal:
        return "inconclusive: chaotic, the difference quotient changes at every step size"
    return "inconclusive: noise, no step size gives a derivative sharp enough"


def _judgement(
    outcome: str, step: _Step, sigma: float, sides: tuple[float, float] | None = None
) -> Judgement:
    signal = max(abs(step.ad), abs(step.fd)) if math.isfinite(step.ad) else abs(step.fd)
    return Judgement(outcome, step.ad, step.fd, step.uncertainty, step.h, sigma, signal, sides)
