"""What a probe costs: against ``wp.autograd.gradcheck``, and as programs grow.

``python tests/benchmarks/probe_cost.py``. Every program is probed with warm kernels and without
the verdict cache. gradcheck is run on the same launches; it differentiates every parameter by
itself, so it is given up above ``GRADCHECK_LIMIT`` of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from measuring import Row, Spent, script, spent

GRADCHECK_LIMIT = 10_000

MANY_PARAMETERS = """\
import sys

import numpy as np
import warp as wp

wp.config.quiet = True


@wp.kernel
def respond(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]


@wp.kernel
def misfit(y: wp.array(dtype=float), wanted: wp.array(dtype=float), scale: float,
           loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - wanted[i]
    wp.atomic_add(loss, 0, scale * d * d)


@wp.kernel
def descend(x: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    x[i] = x[i] - rate * g[i]


def forward(x, wanted, y, loss):
    n = x.shape[0]
    wp.launch(respond, dim=n, inputs=[x], outputs=[y])
    wp.launch(misfit, dim=n, inputs=[y, wanted, 1.0 / n], outputs=[loss])


def make(n):
    rng = np.random.default_rng(1)
    x = wp.array(rng.normal(size=n), dtype=float, requires_grad=True)
    wanted = wp.array(rng.normal(size=n), dtype=float)
    y = wp.zeros(n, dtype=float, requires_grad=True)
    return x, wanted, y, wp.zeros(1, dtype=float, requires_grad=True)


def train(n):
    x, wanted, y, loss = make(n)
    for _ in range(3):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            forward(x, wanted, y, loss)
        tape.backward(loss)
        wp.launch(descend, dim=n, inputs=[x, x.grad, 0.1])
        tape.zero()


if __name__ == "__main__":
    train(int(sys.argv[1]))
"""
GRADCHECK = """\
import sys

import warp as wp
from many import make, respond

x, wanted, y, loss = make(int(sys.argv[1]))
wp.autograd.gradcheck(respond, dim=x.shape[0], inputs=[x], outputs=[y], raise_exception=False)
"""
MANY_STEPS = """\
import sys

import warp as wp

wp.config.quiet = True
STEPS = int(sys.argv[1])


@wp.kernel
def advance(x: wp.array(dtype=float), v: wp.array(dtype=float), drag: wp.array(dtype=float),
            nx: wp.array(dtype=float), nv: wp.array(dtype=float)):
    i = wp.tid()
    nv[i] = v[i] - 0.01 * (drag[0] * v[i] + x[i])
    nx[i] = x[i] + 0.01 * nv[i]


@wp.kernel
def misfit(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


def state():
    return wp.ones(8, dtype=float, requires_grad=True), wp.zeros(8, dtype=float, requires_grad=True)


drag = wp.array([0.7], dtype=float, requires_grad=True)
for _ in range(3):
    states = [state() for _ in range(STEPS + 1)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for now, after in zip(states, states[1:]):
            wp.launch(advance, dim=8, inputs=[*now, drag], outputs=[*after])
        wp.launch(misfit, dim=8, inputs=[states[-1][0]], outputs=[loss])
    tape.backward(loss)
    drag.assign(drag.numpy() - 0.01 * drag.grad.numpy())
    tape.zero()
"""


def probed(place: Path, entry: str, environment: Mapping[str, str]) -> tuple[Spent, Mapping[str, object]]:
    """Probe a program twice (the first time compiles its kernels); the second time counts."""
    report = place / "report.json"
    words = [script("warplint"), "check", "--no-cache", "--timeout", "240", "--format", "json"]
    words += ["--entry", entry, entry.split()[0]]
    for _ in range(2):
        cost = spent(words, place, environment, report)
    (program,) = json.loads(report.read_text())["programs"]
    return cost, program


def rows() -> Iterator[Row]:
    # Kernels are kept outside the project: what lies in it is copied afresh for every run.
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as kernels:
        place = Path(folder)
        (place / "many.py").write_text(MANY_PARAMETERS)
        (place / "steps.py").write_text(MANY_STEPS)
        (place / "check.py").write_text(GRADCHECK)
        environment = {**os.environ, "WARP_CACHE_PATH": kernels}
        for count in (1, 100, 10_000, 1_000_000):
            cost, program = probed(place, f"many.py {count}", environment)
            goal = 2.0 if count == 1 else None
            detail = f"{program['forward_passes']} forward passes, {program['status']}"
            yield Row(f"{count:,} parameters: probe", cost.seconds, "s", goal, detail)
            if count <= GRADCHECK_LIMIT:
                words = [sys.executable, "check.py", str(count)]
                theirs = min(spent(words, place, environment).seconds for _ in range(2))
                detail = f"{2 * count + 1:,} forward launches of one kernel"
                yield Row(f"{count:,} parameters: gradcheck", theirs, "s", None, detail)
        for steps in (10, 100, 1000):
            cost, program = probed(place, f"steps.py {steps}", environment)
            detail = f"{program['forward_passes']} forward passes, {program['status']}"
            yield Row(f"{steps:,} steps: probe", cost.seconds, "s", None, detail)


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    for row in rows():
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
