"""A repository of any size, of programs that differ: ``write_tree(folder, files)``.

One file in twenty records a tape, one in four of the others has kernels only, the rest is plain
Python that imports from its neighbours, as in a repository that uses Warp here and there.
"""

from __future__ import annotations

import random
from pathlib import Path

TAPED = '''\
"""Fits the drag of {name}."""
import numpy as np
import warp as wp

from {package}.{neighbour} import settings_{neighbour}


@wp.kernel
def advance_{name}(x: wp.array(dtype=float), v: wp.array(dtype=float), drag: wp.array(dtype=float),
                   nx: wp.array(dtype=float), nv: wp.array(dtype=float)):
    i = wp.tid()
    nv[i] = v[i] - {dt} * (drag[0] * v[i] + {stiffness} * x[i])
    nx[i] = x[i] + {dt} * nv[i]


@wp.kernel
def misfit_{name}(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


class Simulation:
    def __init__(self, steps):
        self.steps = steps
        self.states = [(wp.ones({n}, dtype=float, requires_grad=True),
                        wp.zeros({n}, dtype=float, requires_grad=True)) for _ in range(steps + 1)]
        self.drag = wp.array(np.array([{drag}]), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def forward(self):
        for k in range(self.steps):
            (x, v), (nx, nv) = self.states[k], self.states[k + 1]
            wp.launch(advance_{name}, dim={n}, inputs=[x, v, self.drag], outputs=[nx, nv])
        wp.launch(misfit_{name}, dim={n}, inputs=[self.states[-1][0]], outputs=[self.loss])

    def train(self, rounds):
        for _ in range(rounds):
            self.loss.zero_()
            with wp.Tape() as tape:
                self.forward()
            tape.backward(self.loss)
            self.drag.assign(self.drag.numpy() - {rate} * self.drag.grad.numpy())
            tape.zero()


if __name__ == "__main__":
    Simulation({steps}).train(settings_{neighbour}()["rounds"])
'''
KERNELS = '''\
"""Kernels of {name}."""
import warp as wp


@wp.func
def weight_{name}(r: float, h: float):
    q = r / h
    if q < 1.0:
        return {stiffness} * (1.0 - q) * (1.0 - q)
    return 0.0


@wp.kernel
def density_{name}(p: wp.array(dtype=wp.vec3), h: float, rho: wp.array(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for j in range(p.shape[0]):
        total += weight_{name}(wp.length(p[i] - p[j]), h)
    rho[i] = total


def settings_{name}():
    return {{"rounds": {steps}, "rate": {rate}}}
'''
PLAIN = '''\
"""Reads and writes tables of {name}."""
import csv
import json
from pathlib import Path

from {package}.{neighbour} import settings_{neighbour}


def read_{name}(path):
    with open(path, newline="") as stream:
        return [dict(row) for row in csv.DictReader(stream)]


def write_{name}(path, rows):
    Path(path).write_text(json.dumps({{"rows": rows, **settings_{neighbour}()}}))


def settings_{name}():
    return {{"rounds": {steps}, "rate": {rate}}}
'''


def write_tree(folder: Path, files: int, *, per_package: int = 50, seed: int = 0) -> None:
    """Write ``files`` Python files below ``folder``, the same ones for the same seed."""
    draw = random.Random(seed)
    for number in range(files):
        package = f"part{number // per_package:03}"
        place = folder / package
        if number % per_package == 0:
            place.mkdir(parents=True)
            (place / "__init__.py").write_text("")
        first = number - number % per_package
        text = TAPED if number % 20 == 7 else KERNELS if number % 4 == 0 or number == first else PLAIN
        neighbour = first + draw.randrange(0, max(1, number - first), 4)
        (place / f"m{number}.py").write_text(
            text.format(
                name=f"m{number}",
                package=package,
                neighbour=f"m{neighbour}",
                dt=round(draw.uniform(0.001, 0.02), 4),
                stiffness=round(draw.uniform(1.0, 50.0), 2),
                drag=round(draw.uniform(0.1, 2.0), 2),
                rate=round(draw.uniform(0.01, 0.2), 3),
                n=draw.randrange(4, 64),
                steps=draw.randrange(3, 12),
            )
        )
