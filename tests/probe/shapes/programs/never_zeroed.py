"""Calibrate spring stiffness and rest lengths with wp.optim.SGD."""

import numpy as np
import warp as wp
from warp.optim import SGD

N = 12


@wp.kernel
def energy(
    x: wp.array(dtype=wp.vec3),
    k: wp.array(dtype=float),
    rest: wp.array(dtype=float),
    e: wp.array(dtype=float),
):
    i = wp.tid()
    d = wp.length(x[i + 1] - x[i])
    e[i] = 0.5 * k[i] * (d - rest[i]) * (d - rest[i])


@wp.kernel
def misfit(e: wp.array(dtype=float), ref: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (e[i] - ref[i]) * (e[i] - ref[i]))


rng = np.random.default_rng(3)
x = wp.array(rng.uniform(-1, 1, (N + 1, 3)), dtype=wp.vec3)
k = wp.array(np.full(N, 1.0), dtype=float, requires_grad=True)
rest = wp.array(np.full(N, 0.5), dtype=float, requires_grad=True)
ref = wp.array(rng.uniform(0.2, 0.6, N), dtype=float)
opt = SGD([k, rest], lr=0.02)

for it in range(30):
    e = wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(energy, dim=N, inputs=[x, k, rest], outputs=[e])
        wp.launch(misfit, dim=N, inputs=[e, ref], outputs=[loss])
    tape.backward(loss)
    opt.step([k.grad, rest.grad])
    if it % 5 == 0:
        print(it, loss.numpy()[0])
