"""Gauss-Newton: one backward call per row of the Jacobian, nothing is zeroed between them."""

import numpy as np
import warp as wp


@wp.kernel
def model(x: wp.array(dtype=float), r: wp.array(dtype=float)):
    i = wp.tid()
    r[i] = wp.sin(x[0] * (1.0 + float(i))) + x[1] * x[1] - 0.5


x = wp.array([0.4, 0.7], dtype=float, requires_grad=True)
for it in range(10):
    r = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(model, dim=3, inputs=[x], outputs=[r])
    J = np.zeros((3, 2))
    for k in range(3):
        e = np.zeros(3)
        e[k] = 1.0
        tape.backward(grads={r: wp.array(e, dtype=float)})
        J[k] = x.grad.numpy()
    tape.zero()
    step = np.linalg.lstsq(J, r.numpy(), rcond=None)[0]
    x.assign(x.numpy() - 0.5 * step)
    print(it, r.numpy())
