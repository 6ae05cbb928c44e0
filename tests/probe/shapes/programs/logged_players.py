"""Two players; the first one's gradient is logged again after the other one's pass."""

import numpy as np
import warp as wp


@wp.kernel
def cost(a: wp.array(dtype=float), b: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (a[i] * a[i] - b[i]) * (a[i] * a[i] - b[i]) + 0.1 * b[i] * a[i])


a = wp.array([0.4, 0.7, 1.5], dtype=float, requires_grad=True)
b = wp.array([0.5, 0.8, 1.1], dtype=float, requires_grad=True)
const_b = wp.zeros(3, dtype=float)
const_a = wp.zeros(3, dtype=float)
for it in range(10):
    wp.copy(const_b, b)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as ta:
        wp.launch(cost, dim=3, inputs=[a, const_b], outputs=[loss])
    ta.backward(loss)
    a.assign(a.numpy() - 0.05 * a.grad.numpy())
    wp.copy(const_a, a)
    loss2 = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tb:
        wp.launch(cost, dim=3, inputs=[const_a, b], outputs=[loss2])
    tb.backward(loss2)
    print(it, np.linalg.norm(a.grad.numpy()))
    b.assign(b.numpy() - 0.05 * b.grad.numpy())
    ta.zero()
    tb.zero()
