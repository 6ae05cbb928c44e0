"""Throw a chain of masses so that it lands on target points; stiffnesses and throw are fitted."""

import numpy as np
import warp as wp

SEED = 0
NODES = 6
STEPS = 20
DT = 0.02
STIFFNESS = 40.0
DAMPING = 0.3
SPEED = 1.0
HEIGHT = 3.0
GROUND = 0.0
BOUNCE = 0.0
LOSS_SCALE = 1.0
RATE = 0.02
ITERATIONS = 10


@wp.func
def weigh(value: float, scale: float):
    return scale * value


@wp.kernel
def throw(x0: wp.array(dtype=wp.vec3), v0: wp.array(dtype=wp.vec3), x: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    x[i] = x0[i] + v0[i] * 0.01


@wp.kernel
def spring_forces(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    damping: float,
    f: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    d = x[i + 1] - x[i]
    length = wp.length(d)
    n = d / length
    push = n * (stiffness[i] * (length - rest[i]) + damping * wp.dot(v[i + 1] - v[i], n))
    wp.atomic_add(f, i, push)
    wp.atomic_sub(f, i + 1, push)


@wp.kernel
def integrate(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.vec3),
    ground: float,
    bounce: float,
    dt: float,
    x_new: wp.array(dtype=wp.vec3),
    v_new: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    force = f[i] + wp.vec3(0.0, -9.81, 0.0)
    depth = x[i][1]
    if depth < 0.0:
        force = force + wp.vec3(0.0, -ground * depth, 0.0)
    speed = v[i] + force * dt
    if bounce > 0.0 and depth < 0.0 and speed[1] < 0.0:
        speed = wp.vec3(0.8 * speed[0], -bounce * speed[1], 0.8 * speed[2])
    v_new[i] = speed
    x_new[i] = x[i] + speed * dt


@wp.kernel
def distances(
    x: wp.array(dtype=wp.vec3), targets: wp.array(dtype=wp.vec3), scale: float, loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = x[i] - targets[i]
    wp.atomic_add(loss, 0, weigh(wp.dot(d, d), scale))


@wp.kernel
def descend_float(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


@wp.kernel
def descend_vector(p: wp.array(dtype=wp.vec3), g: wp.array(dtype=wp.vec3), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


DESCEND = {wp.float32: descend_float, wp.vec3: descend_vector}


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        points = np.zeros((NODES, 3), dtype=np.float32)
        points[:, 0] = np.arange(NODES) * 0.3
        points[:, 1] = HEIGHT
        self.x0 = wp.array(points, dtype=wp.vec3)
        self.rest = wp.array(np.full(NODES - 1, 0.28, dtype=np.float32))
        self.targets = wp.array(
            (points + rng.normal(size=(NODES, 3)) * (1.0, 0.5, 1.0)).astype(np.float32), dtype=wp.vec3
        )
        speeds = SPEED * rng.normal(size=(NODES, 3))
        stiffness = STIFFNESS * rng.uniform(0.7, 1.3, NODES - 1)
        self.start = [speeds.astype(np.float32), stiffness.astype(np.float32)]
        self.types = [wp.vec3, wp.float32]
        self.x = [wp.zeros(NODES, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS + 1)]  # buffer
        self.v = [wp.zeros(NODES, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS)]  # buffer
        self.f = [wp.zeros(NODES, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS)]  # buffer

    def forward(self, parameters, loss):
        v0, stiffness = parameters
        wp.launch(throw, dim=NODES, inputs=[self.x0, v0], outputs=[self.x[0]])
        for k in range(STEPS):
            v = v0 if k == 0 else self.v[k - 1]
            self.f[k].zero_()
            wp.launch(
                spring_forces,
                dim=NODES - 1,
                inputs=[self.x[k], v, self.rest, stiffness, DAMPING],
                outputs=[self.f[k]],
            )
            wp.launch(
                integrate,
                dim=NODES,
                inputs=[self.x[k], v, self.f[k], GROUND, BOUNCE, DT],
                outputs=[self.x[k + 1], self.v[k]],
            )
        wp.launch(distances, dim=NODES, inputs=[self.x[STEPS], self.targets, LOSS_SCALE], outputs=[loss])
