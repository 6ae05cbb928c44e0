"""Particles that repel each other: the hash grid is rebuilt before the backward pass."""

import numpy as np
import warp as wp

N = 8


@wp.kernel
def repel(grid: wp.uint64, x: wp.array(dtype=wp.vec3), w: wp.array(dtype=float), e: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.hash_grid_query(grid, x[i], 1.0)
    for j in q:
        d = wp.length(x[i] - x[j])
        if d < 1.0:
            wp.atomic_add(e, i, w[j] * (1.0 - d))


@wp.kernel
def cost(e: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (e[i] - 1.0) * (e[i] - 1.0))


rng = np.random.default_rng(0)
x = wp.array(rng.uniform(0, 1.5, (N, 3)), dtype=wp.vec3)
far = wp.array(rng.uniform(0, 1.5, (N, 3)) + np.arange(N)[:, None] * 5.0, dtype=wp.vec3)
w = wp.full(N, 0.5, dtype=float, requires_grad=True)
grid = wp.HashGrid(8, 8, 8)
for it in range(8):
    e = wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    grid.build(x, 1.0)
    with wp.Tape() as tape:
        wp.launch(repel, dim=N, inputs=[grid.id, x, w], outputs=[e])
        wp.launch(cost, dim=N, inputs=[e], outputs=[loss])
    grid.build(far, 1.0)
    tape.backward(loss)
    w.assign(w.numpy() - 0.02 * w.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])
