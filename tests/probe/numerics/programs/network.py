"""Fit a small network of two hidden layers to points of a curve."""

import numpy as np
import warp as wp

SEED = 0
POINTS = 24
WIDTH = 8
RELU = False
WEIGHT = 1.0
LOSS_SCALE = 1.0
RATE = 0.02
ITERATIONS = 10


@wp.func
def weigh(value: float, scale: float):
    return scale * value


@wp.kernel
def dense(
    x: wp.array2d(dtype=float),
    w: wp.array(dtype=float),
    b: wp.array(dtype=float),
    inputs: int,
    outputs: int,
    y: wp.array2d(dtype=float),
):
    s, j = wp.tid()
    total = b[j]
    for i in range(inputs):
        total += x[s, i] * w[i * outputs + j]
    y[s, j] = total


@wp.kernel
def activate(x: wp.array2d(dtype=float), relu: int, y: wp.array2d(dtype=float)):
    s, j = wp.tid()
    if relu == 1:
        y[s, j] = wp.max(x[s, j], 0.1 * x[s, j])  # leaky: no unit is dead, each path carries a gradient
    else:
        y[s, j] = wp.tanh(x[s, j])


@wp.kernel
def squares(
    y: wp.array2d(dtype=float), goal: wp.array(dtype=float), scale: float, loss: wp.array(dtype=float)
):
    s = wp.tid()
    d = y[s, 0] - goal[s]
    wp.atomic_add(loss, 0, weigh(d * d, scale))


@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


DESCEND = {wp.float32: descend}


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        x = rng.uniform(-2.0, 2.0, (POINTS, 2)).astype(np.float32)
        self.x = wp.array(x, dtype=float)
        self.goal = wp.array((np.sin(2.0 * x[:, 0]) + 0.3 * x[:, 1]).astype(np.float32))
        sizes = [(2, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
        self.start = []
        for a, b in sizes:
            self.start.append((WEIGHT * rng.normal(size=a * b) / np.sqrt(a)).astype(np.float32))
            self.start.append((0.1 * rng.normal(size=b)).astype(np.float32))
        self.types = [wp.float32] * 6
        self.sizes = sizes
        self.sums = [
            wp.zeros((POINTS, WIDTH), dtype=float, requires_grad=True)  # buffer
            for _ in range(2)
        ]
        self.hidden = [
            wp.zeros((POINTS, WIDTH), dtype=float, requires_grad=True)  # buffer
            for _ in range(2)
        ]
        self.y = wp.zeros((POINTS, 1), dtype=float, requires_grad=True)

    def layer(self, parameters, n, x, y):
        a, b = self.sizes[n]
        w, bias = parameters[2 * n], parameters[2 * n + 1]
        wp.launch(dense, dim=(POINTS, b), inputs=[x, w, bias, a, b], outputs=[y])

    def forward(self, parameters, loss):
        x = self.x
        for n in range(2):
            self.layer(parameters, n, x, self.sums[n])
            x = self.hidden[n]
            wp.launch(activate, dim=(POINTS, WIDTH), inputs=[self.sums[n], 1 if RELU else 0], outputs=[x])
        self.layer(parameters, 2, x, self.y)
        wp.launch(squares, dim=POINTS, inputs=[self.y, self.goal, LOSS_SCALE], outputs=[loss])
