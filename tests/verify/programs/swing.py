"""Fit the strength and the drag of a row of pendulums to where they swing to.

Options plant what a test is about; without any the gradients are right.
"""

import argparse

import numpy as np
import warp as wp

N = 8
STEPS = 40
DT = 0.05

parser = argparse.ArgumentParser()
parser.add_argument("--overwrite-at", type=int, default=0, help="step after which a state is overwritten")
parser.add_argument("--window", type=int, default=STEPS, help="steps on one tape")
parser.add_argument("--rate", type=float, default=0.2)
parser.add_argument("--iterations", type=int, default=8)
parser.add_argument("--objective", default="distance")
parser.add_argument("--without", default="", help="what the program leaves out: tape, backward or reading")
options = parser.parse_args()


@wp.kernel
def swing(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    p: wp.array(dtype=float),
    x_next: wp.array(dtype=float),
    v_next: wp.array(dtype=float),
):
    i = wp.tid()
    v_next[i] = v[i] - DT * (p[0] * wp.sin(x[i]) + p[1] * v[i] * wp.abs(v[i]))
    x_next[i] = x[i] + DT * v_next[i]


@wp.kernel
def logistic(x: wp.array(dtype=float), p: wp.array(dtype=float), x_next: wp.array(dtype=float)):
    i = wp.tid()
    x_next[i] = 3.9 * p[1] * x[i] * (1.0 - x[i])


@wp.kernel
def to_pixels(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = 320.0 + 200.0 * x[i]


@wp.kernel
def distance(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 0.1) * (x[i] - 0.1))


@wp.kernel
def steps(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.floor(4.0 * x[i]))


@wp.kernel
def large(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, 1.0e7 + x[i])


@wp.kernel
def valley(p: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = p[0] * p[0] + 0.5 * p[1] * p[1]


@wp.kernel
def corner(p: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = wp.abs(p[0] - 2.0) + wp.abs(p[1] - 1.0)


def simulate(xs, vs, p, first, last):
    for s in range(first, last):
        if options.objective == "valley":
            break
        if options.objective == "chaos":
            wp.launch(logistic, dim=N, inputs=[xs[s], p], outputs=[xs[s + 1]])
            continue
        wp.launch(swing, dim=N, inputs=[xs[s], vs[s], p], outputs=[xs[s + 1], vs[s + 1]])
        if s + 1 == options.overwrite_at:
            wp.launch(to_pixels, dim=N, inputs=[xs[s]])


def measure(xs, p, loss):
    if options.objective in ("corner", "valley"):
        kernel = {"corner": corner, "valley": valley}[options.objective]
        wp.launch(kernel, dim=1, inputs=[p], outputs=[loss])
    else:
        kernel = {"steps": steps, "large": large}.get(options.objective, distance)
        wp.launch(kernel, dim=N, inputs=[xs], outputs=[loss])


def main():
    p = wp.array([2.0, 1.0], dtype=float, requires_grad=True)
    start = np.linspace(0.2, 0.9, N)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for _ in range(options.iterations):
        xs = [wp.array(start, dtype=float, requires_grad=True)]
        xs += [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS)]
        vs = [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
        if options.without == "tape":
            simulate(xs, vs, p, 0, STEPS)
            continue
        for first in range(0, STEPS, options.window):
            loss.zero_()
            tape = wp.Tape()
            with tape:
                simulate(xs, vs, p, first, first + options.window)
                measure(xs[first + options.window], p, loss)
            if options.without != "backward":
                tape.backward(loss)
        if options.without:
            continue
        p.assign(p.numpy() - options.rate * p.grad.numpy())
        p.grad.zero_()


main()
