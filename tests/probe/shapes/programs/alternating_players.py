"""Alternating optimisation: two losses of opposite sign, two parameter sets, one tape each per iteration."""

import numpy as np
import warp as wp


@wp.kernel
def payoff(a: wp.array(dtype=float), b: wp.array(dtype=float), sign: float, out: wp.array(dtype=float)):
    i = wp.tid()
    j = wp.tid() % b.shape[0]
    wp.atomic_add(out, 0, sign * (wp.sin(a[i]) * b[j] + 0.1 * a[i] * a[i] - 0.2 * b[j] * b[j]))


class Player:
    def __init__(self, values, lr):
        self.p = wp.array(values, dtype=float, requires_grad=True)
        self.lr = lr
        self.v = np.zeros(len(values), dtype=np.float32)

    def update(self):
        self.v = 0.6 * self.v + self.p.grad.numpy()
        self.p.assign(self.p.numpy() - self.lr * self.v)


def play(me, other, first, sign):
    out = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    a, b = (me.p, other.p) if first else (other.p, me.p)
    with tape:
        wp.launch(payoff, dim=a.shape[0], inputs=[a, b, sign], outputs=[out])
    tape.backward(out)
    me.update()
    tape.zero()
    return out.numpy()[0]


alice, bob = Player([0.5, -0.4, 0.9], 0.05), Player([0.3, 0.1], 0.05)
for it in range(15):
    la = play(alice, bob, True, 1.0)
    lb = play(bob, alice, False, -1.0)
    print(it, la, lb)
