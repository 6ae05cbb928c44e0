"""Gauss-Newton: Jacobian rows by one backward per residual, tape.zero() between them."""

import numpy as np
import warp as wp

M = 5


@wp.kernel
def residual(
    p: wp.array(dtype=float), t: wp.array(dtype=float), y: wp.array(dtype=float), r: wp.array(dtype=float)
):
    i = wp.tid()
    r[i] = p[0] * wp.exp(-p[1] * t[i]) + p[2] - y[i]


t_np = np.linspace(0, 2, M)
t = wp.array(t_np, dtype=float)
y = wp.array(1.8 * np.exp(-1.1 * t_np) + 0.2, dtype=float)
p = wp.array([1.0, 0.7, 0.0], dtype=float, requires_grad=True)
r = wp.zeros(M, dtype=float, requires_grad=True)
for it in range(6):
    with wp.Tape() as tape:
        wp.launch(residual, dim=M, inputs=[p, t, y], outputs=[r])
    J = np.zeros((M, 3))
    for i in range(M):
        seed = np.zeros(M, dtype=np.float32)
        seed[i] = 1.0
        tape.backward(grads={r: wp.array(seed)})
        J[i] = p.grad.numpy()
        tape.zero()
    rr = r.numpy()
    delta = np.linalg.solve(J.T @ J + 1e-6 * np.eye(3), J.T @ rr)
    p.assign(p.numpy() - delta.astype(np.float32))
    print(it, 0.5 * rr @ rr)
