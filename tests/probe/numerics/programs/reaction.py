"""Recover the diffusivity and the wind of a reacting medium on a ring from its final state."""

import numpy as np
import warp as wp

SEED = 0
CELLS = 32
STEPS = 24
DT = 0.1
DIFFUSIVITY = 1.0
WIND = 1.0
GROWTH = 0.5
UPWIND = False
LOSS_SCALE = 1.0
RATE = 0.02
ITERATIONS = 10


@wp.func
def weigh(value: float, scale: float):
    return scale * value


@wp.kernel
def fluxes(
    u: wp.array(dtype=float),
    diffusivity: wp.array(dtype=float),
    wind: wp.array(dtype=float),
    upwind: int,
    diffusivity_unit: float,
    wind_unit: float,
    flux: wp.array(dtype=float),
):
    i = wp.tid()
    n = u.shape[0]
    a = u[i]
    b = u[(i + 1) % n]
    d = diffusivity[i] / diffusivity_unit
    w = wind[i] / wind_unit
    carried = 0.5 * w * (a + b)
    if upwind == 1:
        carried = wp.max(w, 0.0) * a + wp.min(w, 0.0) * b
    flux[i] = carried - d * d * (b - a)


@wp.kernel
def react(
    u: wp.array(dtype=float),
    flux: wp.array(dtype=float),
    growth: float,
    dt: float,
    u_new: wp.array(dtype=float),
):
    i = wp.tid()
    n = u.shape[0]
    u_new[i] = u[i] + dt * (flux[(i + n - 1) % n] - flux[i] + growth * u[i] * (1.0 - u[i]))


@wp.kernel
def misfit(u: wp.array(dtype=float), seen: wp.array(dtype=float), scale: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = u[i] - seen[i]
    wp.atomic_add(loss, 0, weigh(d * d, scale))


@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


DESCEND = {wp.float32: descend}


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        place = np.arange(CELLS) / CELLS * 2.0 * np.pi
        self.u0 = wp.array((0.5 + 0.4 * np.sin(place + rng.uniform(0, 6))).astype(np.float32))
        self.seen = wp.array((0.6 + 0.3 * np.cos(place + rng.uniform(0, 6))).astype(np.float32))
        self.start = [
            (DIFFUSIVITY * rng.uniform(0.5, 1.2, CELLS)).astype(np.float32),
            (WIND * 0.5 * rng.normal(size=CELLS)).astype(np.float32),
        ]
        self.types = [wp.float32, wp.float32]
        self.u = [wp.zeros(CELLS, dtype=float, requires_grad=True) for _ in range(STEPS)]  # buffer
        self.flux = [wp.zeros(CELLS, dtype=float, requires_grad=True) for _ in range(STEPS)]  # buffer

    def forward(self, parameters, loss):
        diffusivity, wind = parameters
        u = self.u0
        for k in range(STEPS):
            wp.launch(
                fluxes,
                dim=CELLS,
                inputs=[u, diffusivity, wind, 1 if UPWIND else 0, DIFFUSIVITY, WIND],
                outputs=[self.flux[k]],
            )
            wp.launch(react, dim=CELLS, inputs=[u, self.flux[k], GROWTH, DT], outputs=[self.u[k]])
            u = self.u[k]
        wp.launch(misfit, dim=CELLS, inputs=[u, self.seen, LOSS_SCALE], outputs=[loss])
