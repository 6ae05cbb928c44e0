"""All states are rows of one big array; parameters are a slice of a bigger vector."""

import numpy as np
import warp as wp

T, D = 10, 4


@wp.kernel
def step(x: wp.array(dtype=float), u: wp.array(dtype=float), k: int, out: wp.array(dtype=float)):
    i = wp.tid()
    n = x.shape[0]
    out[i] = x[i] + 0.1 * (wp.sin(x[(i + 1) % n]) - x[i] * x[i] * x[i] + u[k])


@wp.kernel
def cost(x: wp.array2d(dtype=float), u: wp.array(dtype=float), loss: wp.array(dtype=float)):
    t, i = wp.tid()
    d = x[t + 1, i] - 0.7
    wp.atomic_add(loss, 0, d * d)
    if i == 0:
        wp.atomic_add(loss, 0, 0.01 * u[t] * u[t])


states = wp.zeros((T + 1, D), dtype=float, requires_grad=True)
theta = wp.array(np.linspace(0.0, 1.0, 2 * T), dtype=float, requires_grad=True)
u = theta[T:]
x0 = np.linspace(-0.5, 0.5, D).astype(np.float32)
m = np.zeros(T, dtype=np.float32)
for it in range(20):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    states[0].assign(x0)
    tape = wp.Tape()
    with tape:
        for k in range(T):
            wp.launch(step, dim=D, inputs=[states[k], u, k], outputs=[states[k + 1]])
        wp.launch(cost, dim=(T, D), inputs=[states, u], outputs=[loss])
    tape.backward(loss)
    m = 0.5 * m + theta.grad.numpy()[T:]
    u.assign(u.numpy() - 0.05 * m)
    tape.zero()
    print(it, loss.numpy()[0])
