"""Place blobs of paint so that their smeared picture matches a given one."""

import numpy as np
import warp as wp

SEED = 0
BLOBS = 8
SIDE = 12
STEPS = 6
HATS = False
LOSS_SCALE = 1.0
OFFSET = 0.0
RATE = 0.02
ITERATIONS = 10


@wp.func
def weigh(value: float, scale: float):
    return scale * value


@wp.kernel
def paint(
    place: wp.array(dtype=wp.vec2), weight: wp.array(dtype=float), hats: int, picture: wp.array2d(dtype=float)
):
    b, i, j = wp.tid()
    n = float(picture.shape[0])
    d = place[b] - wp.vec2((float(i) + 0.5) / n, (float(j) + 0.5) / n)
    if hats == 1:
        value = wp.max(1.0 - 4.0 * wp.abs(d[0]), 0.0) * wp.max(1.0 - 4.0 * wp.abs(d[1]), 0.0)
        wp.atomic_add(picture, i, j, weight[b] * value)
    else:
        wp.atomic_add(picture, i, j, weight[b] * wp.exp(-30.0 * wp.dot(d, d)))


@wp.kernel
def smear(picture: wp.array2d(dtype=float), smeared: wp.array2d(dtype=float)):
    i, j = wp.tid()
    n = picture.shape[0]
    total = picture[(i + 1) % n, j] + picture[(i + n - 1) % n, j]
    total = total + picture[i, (j + 1) % n] + picture[i, (j + n - 1) % n]
    smeared[i, j] = 0.6 * picture[i, j] + 0.1 * total


@wp.kernel
def compare(
    picture: wp.array2d(dtype=float),
    goal: wp.array2d(dtype=float),
    scale: float,
    offset: float,
    loss: wp.array(dtype=float),
):
    i, j = wp.tid()
    d = picture[i, j] - goal[i, j]
    wp.atomic_add(loss, 0, weigh(d * d + offset, scale))


@wp.kernel
def descend_float(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


@wp.kernel
def descend_vector(p: wp.array(dtype=wp.vec2), g: wp.array(dtype=wp.vec2), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


DESCEND = {wp.float32: descend_float, wp.vec2: descend_vector}


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        self.start = [
            rng.uniform(0.1, 0.9, (BLOBS, 2)).astype(np.float32),
            rng.uniform(0.5, 1.5, BLOBS).astype(np.float32),
        ]
        self.types = [wp.vec2, wp.float32]
        self.goal = wp.array(rng.uniform(0.0, 1.0, (SIDE, SIDE)).astype(np.float32))
        self.pictures = [
            wp.zeros((SIDE, SIDE), dtype=float, requires_grad=True)  # buffer
            for _ in range(STEPS + 1)
        ]

    def forward(self, parameters, loss):
        place, weight = parameters
        self.pictures[0].zero_()
        kind = 1 if HATS else 0
        wp.launch(paint, dim=(BLOBS, SIDE, SIDE), inputs=[place, weight, kind], outputs=[self.pictures[0]])
        for k in range(STEPS):
            wp.launch(smear, dim=(SIDE, SIDE), inputs=[self.pictures[k]], outputs=[self.pictures[k + 1]])
        wp.launch(
            compare,
            dim=(SIDE, SIDE),
            inputs=[self.pictures[STEPS], self.goal, LOSS_SCALE, OFFSET],
            outputs=[loss],
        )
