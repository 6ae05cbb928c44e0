"""Random Warp programs: correct ones, and the same ones with a known mistake.

Each is a complete file as a user would write it: the kernels and the forward pass of one of six
families (``programs/``), data and sizes drawn from a seed, and one of four training loops. All
programs of a family and variant share their kernels, so that Warp compiles them once.
"""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FAMILIES = Path(__file__).parent / "programs"

CORRECT = "correct"
SCALED = "scaled"
"""A hand-written adjoint of the objective's weight is 0.95 times the right one."""
CUT = "cut"
"""One intermediate buffer is allocated without ``requires_grad``."""
VARIANTS = (CORRECT, SCALED, CUT)

SCALE = 0.95


@dataclass(frozen=True)
class RandomProgram:
    """One generated program."""

    seed: int
    family: str
    variant: str
    kinks: bool
    """Whether its objective has points without a derivative (contact, relu, clamps, …)."""
    loop: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.family}_{self.seed}_{self.variant}"

    @property
    def source_hash(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


LOOPS = {
    "numpy": """
def train():
    problem = Problem()
    parameters = [wp.array(a, dtype=t, requires_grad=True) for a, t in zip(problem.start, problem.types)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for iteration in range(ITERATIONS):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            problem.forward(parameters, loss)
        tape.backward(loss)
        for p in parameters:
            g = p.grad.numpy()
            size = np.abs(p.numpy()).mean()
            p.assign(p.numpy() - RATE * size * g / (np.abs(g).max() + 1.0e-30))
        tape.zero()
        print(iteration, loss.numpy()[0])
""",
    "fresh": """
def train():
    problem = Problem()
    values = [a.copy() for a in problem.start]
    for iteration in range(ITERATIONS):
        parameters = [wp.array(a, dtype=t, requires_grad=True) for a, t in zip(values, problem.types)]
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            problem.forward(parameters, loss)
        tape.backward(loss=loss)
        for n, p in enumerate(parameters):
            g = p.grad.numpy().copy()
            values[n] = values[n] - RATE * np.abs(values[n]).mean() * g / (np.abs(g).max() + 1.0e-30)
            values[n] = values[n].astype(np.float32)
        tape.zero()
        print(f"iteration {iteration}: loss {float(loss.numpy()[0]):.6g}")
""",
    "kernel": """
def train():
    problem = Problem()
    parameters = [wp.array(a, dtype=t, requires_grad=True) for a, t in zip(problem.start, problem.types)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    rates = None
    for iteration in range(ITERATIONS):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            problem.forward(parameters, loss)
        tape.backward(loss)
        if rates is None:
            rates = [
                float(RATE * np.abs(p.numpy()).mean() / (np.abs(p.grad.numpy()).max() + 1.0e-30))
                for p in parameters
            ]
        for p, rate in zip(parameters, rates):
            wp.launch(DESCEND[p.dtype], dim=p.shape, inputs=[p, p.grad, rate])
        tape.zero()
        if iteration % 5 == 0:
            print(iteration, loss.numpy()[0])
""",
    "adam": """
def train():
    problem = Problem()
    parameters = [wp.array(a, dtype=t, requires_grad=True) for a, t in zip(problem.start, problem.types)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    optimizers = [
        warp.optim.Adam([p], lr=RATE * float(np.abs(a).mean())) for p, a in zip(parameters, problem.start)
    ]
    for iteration in range(ITERATIONS):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            problem.forward(parameters, loss)
        tape.backward(loss)
        for p, optimizer in zip(parameters, optimizers):
            optimizer.step([p.grad])
        tape.zero()
        print(iteration, loss.numpy()[0])
""",
}
_WEIGH = """\
def weigh(value: float, scale: float):
    return scale * value
"""
_WRONG_ADJOINT = f"""

@wp.func_grad(weigh)
def adj_weigh(value: float, scale: float, adj_ret: float):
    wp.adjoint[value] += {SCALE} * scale * adj_ret
"""
_MAIN = """

if __name__ == "__main__":
    train()
"""


def generate(seed: int, variant: str = CORRECT) -> RandomProgram:
    """The program of a seed; the variants of one seed differ in the mistake alone."""
    rng = np.random.default_rng(seed)
    family = sorted(_DRAW)[seed % len(_DRAW)]
    loop = sorted(LOOPS)[int(rng.integers(len(LOOPS)))]
    if family == "splats" and loop == "adam":
        loop = "kernel"  # Adam of wp.optim has no vec2
    kinks = bool(rng.random() < 0.45)
    constants = _DRAW[family](rng, kinks)
    constants["SEED"] = seed
    constants["LOSS_SCALE"] = _log_uniform(rng, 1e-3, 1e3)
    constants["RATE"] = _log_uniform(rng, 0.003, 0.05)
    buffer = rng.random()

    source = (FAMILIES / f"{family}.py").read_text(encoding="utf-8")
    for name, value in constants.items():
        source, count = re.subn(rf"^{name} = .*$", f"{name} = {value!r}", source, flags=re.MULTILINE)
        assert count == 1, f"{family} has no constant {name}"
    if variant == CUT:
        source = _cut(source, buffer)
    source = source.replace("  # buffer", "")
    if loop == "adam":
        source = source.replace("import warp as wp\n", "import warp as wp\nimport warp.optim\n", 1)
    if variant == SCALED:
        source = source.replace(_WEIGH, _WEIGH + _WRONG_ADJOINT)
    source += "\n" + LOOPS[loop] + _MAIN
    return RandomProgram(seed, family, variant, kinks, loop, source)


def _cut(source: str, which: float) -> str:
    lines = source.splitlines(keepends=True)
    buffers = [n for n, line in enumerate(lines) if line.rstrip().endswith("# buffer")]
    chosen = buffers[int(which * len(buffers))]
    lines[chosen] = lines[chosen].replace(", requires_grad=True", "")
    return "".join(lines)


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return float(f"{value:.3g}")


def _springs(rng: np.random.Generator, kinks: bool) -> dict[str, Any]:
    contact = rng.random() < 0.5
    return {
        "NODES": int(rng.integers(2, 12)),
        "STEPS": int(rng.integers(4, 40)),
        "DT": _log_uniform(rng, 0.005, 0.03),
        "STIFFNESS": _log_uniform(rng, 5.0, 100.0),
        "SPEED": _log_uniform(rng, 0.1, 10.0),
        "HEIGHT": float(rng.uniform(0.0, 0.5)) if kinks else 30.0,
        "GROUND": 200.0 if kinks and contact else 0.0,
        "BOUNCE": 0.5 if kinks and not contact else 0.0,
    }


def _network(rng: np.random.Generator, kinks: bool) -> dict[str, Any]:
    return {
        "POINTS": int(rng.integers(4, 48)),
        "WIDTH": int(rng.integers(2, 20)),
        "RELU": kinks,
        "WEIGHT": _log_uniform(rng, 0.3, 3.0),
    }


def _reaction(rng: np.random.Generator, kinks: bool) -> dict[str, Any]:
    return {
        "CELLS": int(rng.integers(6, 64)),
        "STEPS": int(rng.integers(4, 50)),
        "DT": _log_uniform(rng, 0.02, 0.2),
        "DIFFUSIVITY": _log_uniform(rng, 1e-3, 1e3),
        "WIND": _log_uniform(rng, 1e-3, 1e3),
        "GROWTH": float(rng.uniform(0.0, 1.0)),
        "UPWIND": kinks,
    }


def _lens(rng: np.random.Generator, kinks: bool) -> dict[str, Any]:
    return {
        "RAYS": int(rng.integers(5, 80)),
        "TERMS": int(rng.integers(1, 7)),
        "UNIT": _log_uniform(rng, 1e-3, 1e3),
        "ABSOLUTE": kinks,
    }


def _pendulums(rng: np.random.Generator, kinks: bool) -> dict[str, Any]:
    limited = rng.random() < 0.5
    return {
        "COUNT": int(rng.integers(1, 6)),
        "STEPS": int(rng.integers(10, 60)),
        "DT": _log_uniform(rng, 0.01, 0.1),
        "TORQUE": _log_uniform(rng, 1e-2, 1e2),
        "COUPLING": _log_uniform(rng, 0.1, 10.0),
        "FRICTION": 0.3 if kinks and not limited else 0.0,
        "LIMIT": 1.0 if kinks and limited else 0.0,
    }


def _splats(rng: np.random.Generator, kinks: bool) -> dict[str, Any]:
    return {
        "BLOBS": int(rng.integers(1, 16)),
        "SIDE": int(rng.integers(4, 20)),
        "STEPS": int(rng.integers(1, 12)),
        "HATS": kinks,
        "OFFSET": float(rng.choice([0.0, 0.0, 1.0, 100.0])),
    }


_DRAW = {
    "springs": _springs,
    "network": _network,
    "reaction": _reaction,
    "lens": _lens,
    "pendulums": _pendulums,
    "splats": _splats,
}
