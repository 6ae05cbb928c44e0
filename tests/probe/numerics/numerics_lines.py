"""Objectives along a line with known derivatives and float32's rounding, for tests of the judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from warplint.probe.runtime import judge

EPS32 = float(np.finfo(np.float32).eps)
SPACING = 1.0e-5
"""As the probe spaces the evaluations of its noise estimate, relative to the parameter."""


@dataclass
class Counted:
    """A function that counts its evaluations."""

    function: Callable[[float], float]
    calls: int = 0

    def __call__(self, t: float) -> float:
        self.calls += 1
        return self.function(t)


@dataclass
class Case:
    """``f`` at ``x0``, with rounding like that of a float32 program of some length."""

    f: Callable[[float], float]
    x0: float
    ad: float
    """What autodiff says."""
    noise: float = 0.0
    """Standard deviation of the accumulated rounding, relative to the objective."""
    scale: float | None = None
    """The parameter's scale as the probe sees it; None: ``|x0|``, or 0.01 where that is zero."""
    single: bool = True
    """Whether parameter and objective are stored in float32."""
    line: judge.Line = field(init=False)
    count: Counted = field(init=False)

    def __post_init__(self) -> None:
        scale = self.scale or abs(self.x0) or 0.01
        kind = np.float32 if self.single else np.float64
        start = float(kind(self.x0))

        def at(t: float) -> float:
            x = float(kind(start + t))
            y = self.f(x)
            if self.noise and np.isfinite(y):
                # A program's rounding is a function of its input, not of the time of day.
                seed = np.frombuffer(np.float64(x).tobytes(), dtype=np.uint32)
                y += abs(y) * self.noise * np.random.default_rng(seed).normal()
            return float(kind(y))

        def slope(t: float) -> float:
            taken = float(kind(start + t)) - float(kind(start - t))
            return self.ad * taken / (2.0 * t)

        self.count = Counted(at)
        self.line = judge.Line(
            at=self.count,
            slope=slope,
            scale=scale,
            base=at(0.0),
            resolution=EPS32 if self.single else float(np.finfo(np.float64).eps),
        )

    def judge(self) -> judge.Judgement:
        return judge.judge(self.line, judge.Noise(self.line, SPACING * self.line.scale))
