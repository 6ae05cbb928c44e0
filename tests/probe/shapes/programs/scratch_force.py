"""Chain with a shared force buffer, cleared every step inside the tape."""

import numpy as np
import warp as wp

N = 5
STEPS = 8


@wp.kernel
def spring_forces(x: wp.array(dtype=wp.vec3), k: wp.array(dtype=float), f: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    d = x[i + 1] - x[i]
    length = wp.length(d)
    fs = d / length * (k[i] * (length - 0.3))
    wp.atomic_add(f, i, fs)
    wp.atomic_sub(f, i + 1, fs)


@wp.kernel
def integrate(
    x: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    f: wp.array(dtype=wp.vec3),
    dt: float,
    x1: wp.array(dtype=wp.vec3),
    v1: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    vn = v[i] + (f[i] + wp.vec3(0.0, -9.8, 0.0)) * dt
    if i == 0:
        vn = wp.vec3(0.0, 0.0, 0.0)
    v1[i] = vn
    x1[i] = x[i] + vn * dt


@wp.kernel
def tip_loss(x: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    loss[0] = wp.length_sq(x[N - 1] - wp.vec3(1.2, -0.6, 0.0))


class Chain:
    def __init__(self):
        rest = np.zeros((N, 3), dtype=np.float32)
        rest[:, 0] = 0.34 * np.arange(N)
        rest[1::2, 1] = 0.05
        self.xs = [wp.array(rest, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS + 1)]
        self.vs = [wp.zeros(N, dtype=wp.vec3, requires_grad=True) for _ in range(STEPS + 1)]
        self.f = wp.zeros(N, dtype=wp.vec3, requires_grad=True)
        self.k = wp.array(np.full(N - 1, 60.0), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def simulate(self):
        for s in range(STEPS):
            self.f.zero_()
            wp.launch(spring_forces, dim=N - 1, inputs=[self.xs[s], self.k], outputs=[self.f])
            wp.launch(
                integrate,
                dim=N,
                inputs=[self.xs[s], self.vs[s], self.f, 0.04],
                outputs=[self.xs[s + 1], self.vs[s + 1]],
            )
        wp.launch(tip_loss, dim=1, inputs=[self.xs[-1]], outputs=[self.loss])


def optimise(iterations=15, lr=200.0):
    chain = Chain()
    for it in range(iterations):
        tape = wp.Tape()
        with tape:
            chain.simulate()
        tape.backward(chain.loss)
        g = chain.k.grad.numpy().copy()
        tape.zero()
        chain.k.assign(chain.k.numpy() - lr * g)
        print(f"{it:3d} {chain.loss.numpy()[0]:.5f} {g}")
    return chain


if __name__ == "__main__":
    optimise()
