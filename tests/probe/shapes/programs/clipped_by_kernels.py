"""Gradients clipped, decayed and applied by kernels that rewrite .grad in place before the step."""

import numpy as np
import warp as wp


@wp.kernel
def model(
    w: wp.array(dtype=float),
    b: wp.array(dtype=float),
    x: wp.array(dtype=float),
    ref: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    y = w[0] * x[i] + w[1] * x[i] * x[i] + b[0]
    wp.atomic_add(loss, 0, (y - ref[i]) * (y - ref[i]))


@wp.kernel
def norm2(g: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, g[i] * g[i])


@wp.kernel
def clip(g: wp.array(dtype=float), n2: wp.array(dtype=float), limit: float):
    i = wp.tid()
    n = wp.sqrt(n2[0])
    if n > limit:
        g[i] = g[i] * limit / n


@wp.kernel
def step(p: wp.array(dtype=float), g: wp.array(dtype=float), lr: float, decay: float):
    i = wp.tid()
    g[i] = g[i] + decay * p[i]
    p[i] = p[i] - lr * g[i]


xs = np.linspace(-1, 1, 16)
x, ref = wp.array(xs, dtype=float), wp.array(1 + 2 * xs - xs**2, dtype=float)
w = wp.zeros(2, dtype=float, requires_grad=True)
b = wp.array([3.0], dtype=float, requires_grad=True)
for it in range(20):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(model, dim=16, inputs=[w, b, x, ref], outputs=[loss])
    tape.backward(loss)
    n2 = wp.zeros(1, dtype=float)
    for p in (w, b):
        wp.launch(norm2, dim=p.size, inputs=[p.grad, n2])
    for p in (w, b):
        wp.launch(clip, dim=p.size, inputs=[p.grad, n2, 5.0])
        wp.launch(step, dim=p.size, inputs=[p, p.grad, 0.05, 0.01])
    tape.zero()
    print(it, loss.numpy()[0], np.sqrt(n2.numpy()[0]))
