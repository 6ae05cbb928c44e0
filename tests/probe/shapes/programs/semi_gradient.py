"""Temporal-difference learning of a value function; semi-gradient: the bootstrap target is a constant."""

import numpy as np
import warp as wp
from warp.optim import SGD

STATES = 10


@wp.kernel
def value(s: wp.array(dtype=float), w: wp.array(dtype=float), v: wp.array(dtype=float)):
    i = wp.tid()
    v[i] = w[0] + w[1] * s[i] + w[2] * wp.tanh(s[i])


@wp.kernel
def td_error(v: wp.array(dtype=float), target: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = v[i] - target[i]
    wp.atomic_add(loss, 0, 0.5 * d * d / float(v.shape[0]))


@wp.kernel
def bootstrap(
    r: wp.array(dtype=float), v: wp.array(dtype=float), gamma: float, target: wp.array(dtype=float)
):
    i = wp.tid()
    target[i] = r[i] + gamma * v[i]


def main():
    s = np.linspace(-1.0, 1.0, STATES).astype(np.float32)
    now = wp.array(s, dtype=float)
    nxt = wp.array((0.8 * s + 0.1).astype(np.float32), dtype=float)
    r = wp.array((1.0 - s * s).astype(np.float32), dtype=float)
    w = wp.array([0.1, 0.0, 0.2], dtype=float, requires_grad=True)
    opt = SGD([w], lr=0.2)
    for it in range(4):
        vn = wp.zeros(STATES, dtype=float)
        target = wp.zeros(STATES, dtype=float)
        wp.launch(value, STATES, [nxt, w], [vn])
        wp.launch(bootstrap, STATES, [r, vn, 0.9], [target])

        v = wp.zeros(STATES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            wp.launch(value, STATES, [now, w], [v])
            wp.launch(td_error, STATES, [v, target], [loss])
        tape.backward(loss)
        opt.step([w.grad])
        tape.zero()
        if it % 2 == 0:
            print(it, loss.numpy()[0], w.numpy())


if __name__ == "__main__":
    main()
