"""Swing up a row of coupled pendulums with a schedule of torques."""

import numpy as np
import warp as wp

SEED = 0
COUNT = 3
STEPS = 40
DT = 0.05
TORQUE = 1.0
COUPLING = 2.0
FRICTION = 0.0
LIMIT = 0.0
LOSS_SCALE = 1.0
RATE = 0.02
ITERATIONS = 10


@wp.func
def weigh(value: float, scale: float):
    return scale * value


@wp.kernel
def advance(
    q: wp.array(dtype=float),
    w: wp.array(dtype=float),
    torque: wp.array(dtype=float),
    unit: float,
    step: int,
    coupling: float,
    friction: float,
    limit: float,
    dt: float,
    q_new: wp.array(dtype=float),
    w_new: wp.array(dtype=float),
):
    i = wp.tid()
    n = q.shape[0]
    pull = torque[step * n + i] / unit
    if limit > 0.0:
        pull = wp.clamp(pull, -limit, limit)
    acceleration = pull - 4.0 * wp.sin(q[i]) - 0.1 * w[i]
    if i > 0:
        acceleration = acceleration + coupling * (q[i - 1] - q[i])
    if i < n - 1:
        acceleration = acceleration + coupling * (q[i + 1] - q[i])
    if friction > 0.0:
        acceleration = acceleration - friction * wp.sign(w[i])
    speed = w[i] + dt * acceleration
    w_new[i] = speed
    q_new[i] = q[i] + dt * speed


@wp.kernel
def upright(q: wp.array(dtype=float), w: wp.array(dtype=float), scale: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, weigh(1.0 + wp.cos(q[i]) + 0.05 * w[i] * w[i], scale))


@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


DESCEND = {wp.float32: descend}


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        self.q0 = wp.array(rng.normal(size=COUNT).astype(np.float32))
        self.w0 = wp.array(rng.normal(size=COUNT).astype(np.float32))
        self.start = [(TORQUE * rng.normal(size=STEPS * COUNT)).astype(np.float32)]
        self.types = [wp.float32]
        self.q = [wp.zeros(COUNT, dtype=float, requires_grad=True) for _ in range(STEPS)]  # buffer
        self.w = [wp.zeros(COUNT, dtype=float, requires_grad=True) for _ in range(STEPS)]  # buffer

    def forward(self, parameters, loss):
        torque = parameters[0]
        q, w = self.q0, self.w0
        for k in range(STEPS):
            wp.launch(
                advance,
                dim=COUNT,
                inputs=[q, w, torque, TORQUE, k, COUPLING, FRICTION, LIMIT, DT],
                outputs=[self.q[k], self.w[k]],
            )
            q, w = self.q[k], self.w[k]
        wp.launch(upright, dim=COUNT, inputs=[q, w, LOSS_SCALE], outputs=[loss])
