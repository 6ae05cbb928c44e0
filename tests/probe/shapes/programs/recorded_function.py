"""A numpy operation in the middle (an orthogonal transform), with its adjoint given by record_func."""

import numpy as np
import warp as wp

N = 8
Q = np.linalg.qr(np.random.default_rng(0).normal(size=(N, N)))[0].astype(np.float32)


@wp.kernel
def bend(p: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = p[i] + 0.3 * p[i] * p[i]


@wp.kernel
def score(s: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (s[i] - 0.5) * (s[i] - 0.5) * float(i + 1))


def transform(tape, a):
    out = wp.array(Q @ a.numpy(), dtype=float, requires_grad=True)

    def backward():
        a.grad.assign(a.grad.numpy() + Q.T @ out.grad.numpy())

    tape.record_func(backward, arrays=[a, out])
    return out


def main():
    p = wp.zeros(N, dtype=float, requires_grad=True)
    for it in range(15):
        tape = wp.Tape()
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with tape:
            b = wp.zeros(N, dtype=float, requires_grad=True)
            wp.launch(bend, dim=N, inputs=[p], outputs=[b])
            s = transform(tape, b)
            wp.launch(score, dim=N, inputs=[s], outputs=[loss])
        tape.backward(loss)
        p.assign(p.numpy() - 0.05 * p.grad.numpy())
        tape.zero()
        print(it, loss.numpy()[0])


main()
