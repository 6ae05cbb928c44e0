"""Checkpointing over position and velocity; only the adjoint of the position is handed back."""

import numpy as np
import warp as wp

SEG, LEN = 3, 4


@wp.kernel
def advance(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    c: wp.array(dtype=float),
    s: int,
    x1: wp.array(dtype=float),
    v1: wp.array(dtype=float),
):
    i = wp.tid()
    a = c[s] - wp.sin(x[i]) - 0.1 * v[i]
    vn = v[i] + 0.15 * a
    v1[i] = vn
    x1[i] = x[i] + 0.15 * vn


@wp.kernel
def final_cost(x: wp.array(dtype=float), v: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 1.0) * (x[i] - 1.0) + 0.2 * v[i] * v[i])


def segment(x, v, ctrl, k):
    for s in range(k * LEN, (k + 1) * LEN):
        x1 = wp.empty(2, dtype=float, requires_grad=True)
        v1 = wp.empty(2, dtype=float, requires_grad=True)
        wp.launch(advance, dim=2, inputs=[x, v, ctrl, s], outputs=[x1, v1])
        x, v = x1, v1
    return x, v


def main():
    ctrl = wp.zeros(SEG * LEN, dtype=float, requires_grad=True)
    for it in range(10):
        saved = [(wp.array([0.1, 0.4], dtype=float), wp.zeros(2, dtype=float))]
        for k in range(SEG - 1):
            saved.append(segment(*saved[-1], ctrl, k))
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        adj_x = None
        for k in reversed(range(SEG)):
            x0 = wp.clone(saved[k][0], requires_grad=True)
            v0 = wp.clone(saved[k][1], requires_grad=True)
            with wp.Tape() as tape:
                x1, v1 = segment(x0, v0, ctrl, k)
                if k == SEG - 1:
                    wp.launch(final_cost, dim=2, inputs=[x1, v1], outputs=[loss])
            if k == SEG - 1:
                tape.backward(loss)
            else:
                tape.backward(grads={x1: adj_x})
            adj_x = wp.clone(x0.grad)
        g = ctrl.grad.numpy().copy()
        ctrl.grad.zero_()
        ctrl.assign(ctrl.numpy() - 1.0 * g)
        print(it, loss.numpy()[0], np.linalg.norm(g))


main()
