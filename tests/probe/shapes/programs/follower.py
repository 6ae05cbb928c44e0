"""Two wheels: the second one follows the first slowly, between the passes; only the first is fitted."""

import numpy as np
import warp as wp

N = 6


@wp.kernel
def spin(w: wp.array(dtype=float), t: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = w[0] * t[i] + wp.sin(w[1] * t[i])


@wp.kernel
def gap(a: wp.array(dtype=float), b: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = a[i] - 0.5 * b[i] - 1.0
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def creep(second: wp.array(dtype=float), first: wp.array(dtype=float)):
    i = wp.tid()
    second[i] = 0.7 * second[i] + 0.3 * first[i]


class Wheels:
    def __init__(self):
        self.t = wp.array(np.linspace(0.2, 1.2, N), dtype=float)
        self.first = wp.array([0.4, 0.9], dtype=float, requires_grad=True)
        self.second = wp.clone(self.first, requires_grad=False)

    def turn(self):
        other = wp.zeros(N, dtype=float)
        wp.launch(spin, N, [self.second, self.t], [other])
        out = wp.zeros(N, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(spin, N, [self.first, self.t], [out])
            wp.launch(gap, N, [out, other], [loss])
        tape.backward(loss)
        self.first.assign(self.first.numpy() - 0.02 * self.first.grad.numpy())
        tape.zero()
        wp.launch(creep, 2, [self.second, self.first])


wheels = Wheels()
for _ in range(5):
    wheels.turn()
