"""A finite difference that can be trusted in float32: noise, step ladder, kinks, three values.

Everything here is arithmetic on an objective that can be evaluated along a line; nothing knows
of Warp. Noise is estimated from a difference table of equally spaced evaluations (ECnoise,
Moré & Wild, "Estimating Computational Noise", SIAM J. Sci. Comput. 33, 2011). The uncertainty
of a central difference D at step h is

    U(h) = K * sigma / (sqrt(2) * h) + |D(h) - D(h')|,     h' the next larger step,

and the step with the smallest U is the one that is judged ("Estimating Derivatives of Noisy
Simulations", ACM TOMS 38, 2012, by the same authors, for the first term).

- *agrees* is an equivalence test: autodiff is within U of the difference, and autodiff and U
  together leave no room for an error of more than ``POWER``;
- *differs* needs more than a difference beyond U: the steps near the smallest one that noise
  allows must all tell it, and so must the derivative from the right and the one from the left,
  each on its own. Beside a kink one of the two is what autodiff says; on a staircase or across
  a jump the smallest steps tell something else than the large ones;
- everything else is *inconclusive*, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

AGREES = "agrees"
MEASURED = "measured"
"""Taken again for an evidence script, and not judged."""
DIFFERS = "differs"

CONFIDENCE = 4.0
"""K: standard deviations of evaluation noise that a difference has to exceed."""
POWER = 0.03
"""Agreement is only claimed where an error of this share of the signal would have been seen."""
FLOOR = 1.0e-3
"""Differences below this share of the signal are never called wrong."""
INERT = 0.01
"""A zero derivative is claimed where U is at most this share of the objective's scale."""
ASSUMED_NOISE = 8.0
"""Noise to begin with, in units of the objective's last digit, until it is worth measuring."""

WIDENING = 30.0
"""Factor by which the noise estimate's spacing grows when its values do not change."""
WIDENINGS = 2
"""How often it grows at most: an inert parameter never changes them."""

LADDER = tuple(10.0 ** (-k / 2.0) for k in range(-4, 15))
"""Step sizes relative to the parameter's scale, largest first: 100, 32, 10 … 1e-7."""
FIRST = 8
"""Index of the step to begin with (1e-2)."""

_EXTRAPOLATION = 1.0 / (math.sqrt(10.0) - 1.0)
"""h / (h' - h) for neighbours of the ladder."""


@dataclass
class Line:
    """The objective along one direction: ``at(t)`` is the objective of ``x + t*d``.

    ``slope(t)`` is the consumed gradient's prediction of ``(f(x+td) - f(x-td)) / 2t`` from the
    parameter values actually taken (rounded to the parameter's precision).
    """

    at: Callable[[float], float]
    slope: Callable[[float], float]
    scale: float
    """Size of the parameter's values: what the ladder's steps are relative to."""
    base: float
    """The objective at the point itself."""
    resolution: float
    """Relative spacing of the numbers the objective is stored in (2**-23 for float32)."""
    adjoint_rounding: float = 0.0
    """Rounding error of the inner product of gradient and direction (objective per step)."""
    reference: float | None = None
    """Change of the objective per parameter scale against which a derivative may pass for zero.

    None: the objective itself, and only for an autodiff of exactly zero.
    """
    _cache: dict[float, float] = field(default_factory=dict)

    def value(self, t: float) -> float:
        if t == 0.0:
            return self.base
        if t not in self._cache:
            self._cache[t] = self.at(t)
        return self._cache[t]


@dataclass
class Judgement:
    """The comparison along one direction; derivatives are objective per unit of the step."""

    outcome: str
    ad: float
    fd: float
    uncertainty: float
    step: float
    sigma: float
    signal: float
    one_sided: tuple[float, float] | None = None
    ladder: list[tuple[float, float, float]] = field(default_factory=list)
    """Step, difference and its noise, largest step first."""

    @property
    def relative_error(self) -> float:
        return relative_error(self.ad, self.fd, self.uncertainty)


def relative_error(ad: float, fd: float, uncertainty: float = 0.0) -> float:
    """|ad - fd| relative to the finite difference (to the larger of both where it vanishes)."""
    if not math.isfinite(ad) or not math.isfinite(fd):
        return math.inf
    size = abs(fd) if abs(fd) > uncertainty else max(abs(ad), abs(fd))
    return abs(ad - fd) / size if size > 0.0 else 0.0


def curvature(line: Line, sigma: float) -> float | None:
    """The second derivative along ``line`` by the differences that were taken; None if noise hides it."""
    best: tuple[float, float] | None = None
    for h in sorted(t for t in line._cache if t > 0.0 and -t in line._cache):
        second = (line.value(h) + line.value(-h) - 2.0 * line.base) / h**2
        doubt = CONFIDENCE * math.sqrt(6.0) * sigma / h**2
        if math.isfinite(second) and doubt < 0.5 * abs(second) and (best is None or doubt < best[1]):
            best = (second, doubt)
    return best[0] if best is not None else None


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
    """Noise of the objective near the base point, at least its rounding error.

    Where most of the values are equal the spacing is below what the program's own numbers
    resolve (a small displacement of something far from the origin), and the difference table
    sees no noise because it sees nothing: it is widened, as Moré & Wild advise.
    """
    rounding = abs(line.base) * line.resolution / math.sqrt(12.0)
    for _ in range(WIDENINGS + 1):
        points = [line.value(i * spacing) for i in (-3, -2, -1, 0, 1, 2, 3)]
        level = noise_level(points)
        if np.count_nonzero(np.diff(points)) >= 4:
            break
        spacing *= WIDENING
    return max(level, rounding) if math.isfinite(level) else rounding


class Noise:
    """Standard deviation of the objective's evaluations; measured when it first matters.

    Most right gradients agree so well at the first two steps that a bound is enough: with more
    noise than the bound, the two differences and autodiff would not meet.
    """

    def __init__(self, line: Line, spacing: float) -> None:
        self._line = line
        self.spacing = spacing
        self.level = ASSUMED_NOISE * line.resolution * abs(line.base)
        self.measured = False

    def measure(self) -> None:
        if not self.measured:
            self.level = measure_noise(self._line, self.spacing)
            self.measured = True


@dataclass
class _Step:
    """A central difference and what is known of its error."""

    index: int
    h: float
    ad: float
    fd: float
    spread: float
    """Standard deviation of the evaluations at this step."""
    truncation: float = math.inf
    """Distance to the next larger step's difference."""

    @property
    def noise(self) -> float:
        return CONFIDENCE * self.spread / (math.sqrt(2.0) * self.h)

    @property
    def uncertainty(self) -> float:
        return self.noise + self.truncation

    @property
    def gap(self) -> float:
        return abs(self.ad - self.fd)

    @property
    def signal(self) -> float:
        return max(abs(self.ad), abs(self.fd)) if math.isfinite(self.ad) else abs(self.fd)


def judge(line: Line, noise: Noise) -> Judgement:
    """Compares autodiff with finite differences along ``line``, adaptively.

    Begins with two steps and stops as soon as they agree with the gradient; goes on over the
    ladder while the answer is in doubt.
    """
    return _Search(line, noise).run()


class _Search:
    """The steps taken along one line."""

    def __init__(self, line: Line, noise: Noise) -> None:
        self.line = line
        self.noise = noise
        self.steps: dict[int, _Step] = {}
        self.sides: tuple[float, float] | None = None
        self.kink = False

    def run(self) -> Judgement:
        self.take(FIRST)
        self.take(FIRST + 1)
        if self.agrees(self.best()):
            return self.judgement(AGREES)
        self.measure_noise()
        while True:
            best = self.best()
            if self.agrees(best):
                return self.judgement(AGREES)
            if not math.isfinite(best.ad) and best.uncertainty <= POWER * best.signal:
                return self.judgement(DIFFERS)
            if self.contradicts(best):
                if self.stands(best):
                    return self.judgement(DIFFERS)
                if self.agrees(self.best()):
                    return self.judgement(AGREES)
            if not self.extend():
                return self.weak()

    # -- steps ---------------------------------------------------------------------------

    def take(self, index: int) -> _Step:
        if index not in self.steps:
            h = LADDER[index] * self.line.scale
            high, low = self.line.value(h), self.line.value(-h)
            with np.errstate(all="ignore"):
                fd = (high - low) / (2.0 * h)
            self.steps[index] = _Step(index, h, self.line.slope(h), fd, self.spread(high, low))
            for k in (index, index + 1):
                if k in self.steps and k - 1 in self.steps:
                    step, larger = self.steps[k], self.steps[k - 1]
                    known = math.isfinite(step.fd) and math.isfinite(larger.fd)
                    step.truncation = abs(step.fd - larger.fd) if known else math.inf
        return self.steps[index]

    def spread(self, high: float, low: float) -> float:
        """Noise at a step: grows with the objective where that is larger than at the point."""
        level = self.noise.level
        size = max(abs(high), abs(low))
        if not math.isfinite(size):
            return level
        base = abs(self.line.base)
        if base > 0.0 and size > base:
            level *= size / base
        return max(level, self.line.resolution * size / math.sqrt(12.0))

    def measure_noise(self) -> None:
        self.noise.measure()
        for step in self.steps.values():
            step.spread = self.spread(self.line.value(step.h), self.line.value(-step.h))

    def best(self) -> _Step:
        return min(self.steps.values(), key=lambda s: (s.uncertainty, s.h))

    def extend(self) -> bool:
        """Takes one more step where it may help; False when none can.

        Smaller steps help while truncation dominates and their noise alone is below the best
        uncertainty; larger ones while noise dominates, and until the differences part.
        """
        best = self.best()
        top, bottom = min(self.steps), max(self.steps)
        down = bottom + 1 < len(LADDER) and (
            self.steps[bottom].noise * math.sqrt(10.0) < best.uncertainty
            or not math.isfinite(best.uncertainty)
        )
        parted = [self.steps[k].truncation for k in (top + 1, top + 2) if k in self.steps]
        up = (
            top > 0
            and math.isfinite(self.steps[top].fd)
            and (len(parted) < 2 or min(parted) <= 3.0 * best.uncertainty)
        )
        if down and (best.truncation > best.noise or not up):
            self.take(bottom + 1)
        elif up:
            self.take(top - 1)
        elif down:
            self.take(bottom + 1)
        else:
            return False
        return True

    # -- decisions -----------------------------------------------------------------------

    def agrees(self, step: _Step) -> bool:
        if not math.isfinite(step.ad) or not math.isfinite(step.uncertainty):
            return False
        if step.signal == 0.0:
            return self.inert(step)
        close = step.gap <= max(step.uncertainty + self.line.adjoint_rounding, FLOOR * step.signal)
        return close and step.gap + step.uncertainty <= POWER * step.signal

    def inert(self, step: _Step) -> bool:
        reference = self.line.reference
        if reference is None:
            reference = abs(self.line.base) if step.ad == 0.0 or not math.isfinite(step.ad) else 0.0
        return step.uncertainty * self.line.scale <= INERT * reference

    def contradicts(self, step: _Step) -> bool:
        if not math.isfinite(step.ad) or not math.isfinite(step.uncertainty):
            return False
        return step.gap > max(step.uncertainty + self.line.adjoint_rounding, FLOOR * step.signal)

    def stands(self, step: _Step) -> bool:
        """Whether the difference is there at the smallest steps, and on both sides."""
        finest = self.finest(step)
        if finest is None or self.noise_may_be_signal():
            return False
        window = [self.take(k) for k in range(finest - 2, finest + 1)]
        if not all(math.isfinite(s.fd) for s in window):
            return False
        wrong_way = math.copysign(1.0, step.fd - step.ad)
        self.sides = self.one_sided(window[-1], window[-2])
        apart = [wrong_way * (side - window[-1].ad) for side in self.sides]
        self.kink = min(apart) < 0.5 * step.gap
        together = all(abs((s.fd - s.ad) - (step.fd - step.ad)) <= 0.3 * step.gap for s in window)
        return together and not self.kink

    def noise_may_be_signal(self) -> bool:
        """Whether the fluctuations at the noise's spacing may be what autodiff differentiates.

        They are far above what rounding explains, and autodiff's slope over that spacing would
        explain a good part of them: a chaotic objective, whose derivative no finite difference can resolve.
        """
        level = self.noise.level
        unexplained = level > 100.0 * self.line.resolution * abs(self.line.base)
        return unexplained and abs(self.best().ad) * self.noise.spacing > 0.1 * level

    def finest(self, step: _Step) -> int | None:
        """Index of the smallest step at which noise leaves ``step``'s difference visible.

        It is told from the noise of a one-sided, extrapolated difference (``one_sided``),
        which must not exceed half of the difference.
        """
        amplified = CONFIDENCE * (1.0 + _EXTRAPOLATION) * math.sqrt(2.0)
        visible = [
            k for k, h in enumerate(LADDER) if amplified * step.spread <= 0.5 * step.gap * h * self.line.scale
        ]
        visible = [k for k in visible if k >= 2 and LADDER[k] >= _SMALLEST]
        return max(visible, default=None)

    def one_sided(self, step: _Step, larger: _Step) -> tuple[float, float]:
        """Derivatives from the left and from the right, curvature extrapolated away."""
        line = self.line
        slopes = []
        for sign in (-1.0, 1.0):
            near = (line.value(sign * step.h) - line.base) / (sign * step.h)
            far = (line.value(sign * larger.h) - line.base) / (sign * larger.h)
            slopes.append(near + _EXTRAPOLATION * (near - far))
        return slopes[0], slopes[1]

    # -- results -------------------------------------------------------------------------

    def weak(self) -> Judgement:
        """No step was sharp enough, or the difference does not stand."""
        best = self.best()
        if not math.isfinite(best.uncertainty):
            return self.judgement("inconclusive: the objective is not finite nearby")
        if not math.isfinite(best.ad):
            return self.judgement(DIFFERS if self.inert(best) else "inconclusive: " + self.reason())
        if best.gap <= best.uncertainty + self.line.adjoint_rounding:
            if best.signal <= best.uncertainty and self.inert(best):
                return self.judgement(AGREES)
            return self.judgement("inconclusive: " + self.reason())
        if self.is_staircase():
            return self.judgement("inconclusive: " + _STAIRCASE)
        if self.kink:
            return self.judgement("inconclusive: " + _KINK)
        return self.judgement("inconclusive: " + self.reason())

    def is_staircase(self) -> bool:
        finite = [s for _, s in sorted(self.steps.items()) if math.isfinite(s.fd)]
        flat = len(finite) >= 3 and all(s.fd == 0.0 for s in finite[-2:])
        return flat and any(abs(s.fd) > s.noise for s in finite[:-2])

    def has_corner(self) -> bool:
        """Whether the slopes of both sides are known, the same at two steps, and not each other's."""
        finite = [s for _, s in sorted(self.steps.items()) if math.isfinite(s.fd)]
        for larger, near, finer in zip(finite, finite[1:], finite[2:]):
            sides, again = self.one_sided(near, larger), self.one_sided(finer, near)
            apart = abs(sides[0] - sides[1])
            moved = max(abs(a - b) for a, b in zip(sides, again))
            noise = CONFIDENCE * math.sqrt(2.0) * (1.0 + _EXTRAPOLATION) * finer.spread / finer.h
            if math.isfinite(apart) and apart > 10.0 * (moved + noise) and apart > 0.1 * max(map(abs, sides)):
                self.sides = again
                return True
        return False

    def reason(self) -> str:
        """Names why no step gives a derivative worth comparing."""
        if self.has_corner():
            return _KINK
        if self.noise_may_be_signal():
            return _CHAOTIC
        finite = [s for _, s in sorted(self.steps.items()) if math.isfinite(s.fd)]
        ulp = abs(self.line.base) * self.line.resolution
        if max(abs(s.fd) * s.h for s in finite if s.h <= self.line.scale) < 20.0 * ulp:
            return "quantised, the objective's last digit exceeds its change"
        if self.is_staircase():
            return _STAIRCASE
        quiet = [s for s in finite if s.noise < 0.2 * abs(s.fd) and math.isfinite(s.truncation)]
        if len(quiet) >= 3 and all(s.truncation > 0.2 * abs(s.fd) for s in quiet):
            return _CHAOTIC
        return "noise, no step size gives a derivative sharp enough"

    def judgement(self, outcome: str) -> Judgement:
        step = self.best()
        return Judgement(
            outcome,
            step.ad,
            step.fd,
            step.uncertainty,
            step.h,
            self.noise.level,
            step.signal,
            self.sides,
            [(s.h, s.fd, s.noise) for _, s in sorted(self.steps.items())],
        )


_KINK = "kink, the one-sided slopes disagree"
_STAIRCASE = "staircase, flat at small steps and secants at large ones"
_CHAOTIC = "chaotic, the difference quotient changes at every step size"
_SMALLEST = 1.0e-5
"""Smallest relative step for one-sided slopes: below it the parameter's own rounding shows."""
