"""Smooth Coulomb friction with a hand-written gradient."""

import numpy as np
import warp as wp
from warp.optim import Adam

STEPS = 10
BLOCKS = 4


@wp.func
def soft_sign(v: float, eps: float):
    return v / wp.sqrt(v * v + eps * eps)


@wp.func_grad(soft_sign)
def adj_soft_sign(v: float, eps: float, adj: float):
    r = wp.sqrt(v * v + eps * eps)
    wp.adjoint[v] += eps * eps / (r * r) * adj
    wp.adjoint[eps] += -v * eps / (r * r * r) * adj


@wp.kernel
def slide(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    mu: wp.array(dtype=float),
    push: wp.array(dtype=float),
    dt: float,
    x1: wp.array(dtype=float),
    v1: wp.array(dtype=float),
):
    i = wp.tid()
    a = push[i] - mu[0] * soft_sign(v[i], 0.3)
    v1[i] = v[i] + dt * a
    x1[i] = x[i] + dt * (v[i] + dt * a)


@wp.kernel
def error(x: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = x[i] - seen[i]
    wp.atomic_add(loss, 0, d * d)


def rollout(mu, push, count=BLOCKS):
    x = wp.zeros(count, dtype=float, requires_grad=True)
    v = wp.array(np.linspace(-0.5, 0.7, count).astype(np.float32), dtype=float, requires_grad=True)
    for _ in range(STEPS):
        x1, v1 = wp.zeros_like(x), wp.zeros_like(v)
        wp.launch(slide, count, [x, v, mu, push, 0.1], [x1, v1])
        x, v = x1, v1
    return x


def main():
    push = wp.array(np.linspace(0.2, 1.0, BLOCKS).astype(np.float32), dtype=float)
    seen = rollout(wp.array([0.6], dtype=float), push).numpy()
    seen = wp.array(seen, dtype=float)
    mu = wp.array([0.2], dtype=float, requires_grad=True)
    opt = Adam([mu], lr=0.03)
    for it in range(4):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            x = rollout(mu, push)
            wp.launch(error, BLOCKS, [x, seen], [loss])
        tape.backward(loss)
        opt.step([mu.grad])
        tape.zero()
        if it % 2 == 0:
            print(it, loss.numpy()[0], mu.numpy()[0])


if __name__ == "__main__":
    main()
