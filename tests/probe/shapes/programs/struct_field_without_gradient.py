"""Struct fields made by a helper; one intermediate field of the struct lacks requires_grad."""

import numpy as np
import warp as wp


@wp.struct
class Lamp:
    power: wp.array(dtype=float)
    height: wp.array(dtype=float)


@wp.struct
class Scratch:
    dist2: wp.array(dtype=float)
    lux: wp.array(dtype=float)


@wp.kernel
def geometry(lamp: Lamp, x: wp.array(dtype=float), s: Scratch):
    i = wp.tid()
    s.dist2[i] = x[i] * x[i] + lamp.height[0] * lamp.height[0]


@wp.kernel
def light(lamp: Lamp, s: Scratch):
    i = wp.tid()
    s.lux[i] = lamp.power[0] * lamp.height[0] / (s.dist2[i] * wp.sqrt(s.dist2[i]))


@wp.kernel
def error(s: Scratch, target: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (s.lux[i] - target) * (s.lux[i] - target))


def make_scratch(n):
    s = Scratch()
    for name in ("dist2", "lux"):
        setattr(s, name, wp.zeros(n, dtype=float, requires_grad=(name == "lux")))
    return s


class Design:
    def __init__(self, n=11):
        self.n = n
        self.x = wp.array(np.linspace(-1, 1, n), dtype=float)
        self.lamp = Lamp()
        self.lamp.power = wp.array([1.0], dtype=float, requires_grad=True)
        self.lamp.height = wp.array([1.3], dtype=float, requires_grad=True)
        self.scratch = make_scratch(n)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def update(self, lr=0.05):
        self.loss.zero_()
        with wp.Tape() as tape:
            wp.launch(geometry, dim=self.n, inputs=[self.lamp, self.x, self.scratch])
            wp.launch(light, dim=self.n, inputs=[self.lamp, self.scratch])
            wp.launch(error, dim=self.n, inputs=[self.scratch, 0.8], outputs=[self.loss])
        tape.backward(self.loss)
        grads = {n: getattr(self.lamp, n).grad.numpy().copy() for n in ("power", "height")}
        for n, g in grads.items():
            p = getattr(self.lamp, n)
            p.assign(p.numpy() - lr * g)
        tape.zero()
        return self.loss.numpy()[0], grads


if __name__ == "__main__":
    d = Design()
    for it in range(12):
        print(it, *d.update())
