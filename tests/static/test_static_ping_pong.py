"""One bug in the shapes people write it: two buffers take turns on one tape."""

from __future__ import annotations

import pytest
from static_prelude import PRELUDE

KERNELS = PRELUDE

VARIANTS: dict[str, dict[str, str]] = {
    "flat script": {
        "program.py": KERNELS
        + """
k = wp.array([0.2], dtype=float, requires_grad=True)
a, b, loss = grad(), grad(), grad(1)
with wp.Tape() as tape:
    for s in range(20):
        wp.launch(step, dim=3, inputs=[a, k], outputs=[b])
        a, b = b, a  # here
    wp.launch(total, dim=3, inputs=[a], outputs=[loss])
tape.backward(loss)
"""
    },
    "modulo index": {
        "program.py": KERNELS
        + """
def main(steps=12):
    k = wp.array([0.2], dtype=float, requires_grad=True)
    bufs = [grad() for _ in range(2)]
    loss = grad(1)
    tape = wp.Tape()
    with tape:
        for s in range(steps):
            wp.launch(step, 3, [bufs[s % 2], k], [bufs[(s + 1) % 2]])  # here
        wp.launch(total, 3, [bufs[steps % 2]], [loss])
    tape.backward(loss)


if __name__ == "__main__":
    main()
"""
    },
    "class": {
        "program.py": KERNELS
        + """
class Sim:
    def __init__(self, steps):
        self.steps = steps
        self.k = wp.array([0.2], dtype=float, requires_grad=True)
        self.a = grad()
        self.b = grad()
        self.loss = grad(1)

    def forward(self):
        for _ in range(self.steps):
            self.substep()
            self.a, self.b = self.b, self.a  # here
        wp.launch(total, 3, [self.a], [self.loss])

    def substep(self):
        wp.launch(step, 3, [self.a, self.k], [self.b])

    def train(self):
        for epoch in range(10):
            self.tape = wp.Tape()
            with self.tape:
                self.forward()
            self.tape.backward(self.loss)
            self.tape.zero()


if __name__ == "__main__":
    Sim(8).train()
"""
    },
    "inherited": {
        "program.py": KERNELS
        + """
class Base:
    def __init__(self):
        self.k = wp.array([0.2], dtype=float, requires_grad=True)
        self.setup()

    def setup(self):
        raise NotImplementedError

    def run(self):
        with wp.Tape() as tape:
            self.forward()
        tape.backward(self.loss)


class Sim(Base):
    def __init__(self, steps=6):
        self.steps = steps
        super().__init__()

    def setup(self):
        self.a, self.b, self.loss = grad(), grad(), grad(1)

    def forward(self):
        src, dst = self.a, self.b
        for _ in range(self.steps):
            wp.launch(step, 3, [src, self.k], [dst])
            src, dst = dst, src  # here
        wp.launch(total, 3, [src], [self.loss])


Sim().run()
"""
    },
    "dataclass": {
        "program.py": "from dataclasses import dataclass, field\n"
        + KERNELS
        + """
@dataclass
class State:
    q: wp.array = field(default_factory=grad)


def advance(state_in, state_out, k):
    wp.launch(step, dim=3, inputs=[state_in.q, k], outputs=[state_out.q])


def main():
    k = wp.array([0.2], dtype=float, requires_grad=True)
    state_0, state_1, loss = State(), State(), grad(1)
    tape = wp.Tape()
    with tape:
        for _ in range(16):
            advance(state_0, state_1, k)
            state_0, state_1 = state_1, state_0  # here
        wp.launch(total, dim=3, inputs=[state_0.q], outputs=[loss])
    tape.backward(loss)


if __name__ == "__main__":
    main()
"""
    },
    "struct": {
        "program.py": KERNELS
        + """
@wp.struct
class State:
    q: wp.array(dtype=float)


@wp.kernel
def advance(before: State, k: wp.array(dtype=float), after: State):
    i = wp.tid()
    after.q[i] = before.q[i] + k[0] * before.q[i] * before.q[i]


def make():
    state = State()
    state.q = grad()
    return state


def main():
    k = wp.array([0.2], dtype=float, requires_grad=True)
    s0, s1, loss = make(), make(), grad(1)
    with wp.Tape() as tape:
        for _ in range(5):
            wp.launch(advance, 3, [s0, k, s1])
            s0, s1 = s1, s0  # here
        wp.launch(total, 3, [s0.q], [loss])
    tape.backward(loss)


if __name__ == "__main__":
    main()
"""
    },
    "property": {
        "program.py": KERNELS
        + """
class Sim:
    def __init__(self):
        self.k = wp.array([0.2], dtype=float, requires_grad=True)
        self.states = [grad(), grad()]
        self.loss = grad(1)
        self.count = 0

    @property
    def current(self):
        return self.states[self.count % 2]

    @property
    def following(self):
        return self.states[(self.count + 1) % 2]

    def forward(self):
        for _ in range(6):
            wp.launch(step, 3, [self.current, self.k], [self.following])  # here
            self.count += 1
        wp.launch(total, 3, [self.current], [self.loss])


sim = Sim()
tape = wp.Tape()
with tape:
    sim.forward()
tape.backward(loss=sim.loss)
"""
    },
    "closure": {
        "program.py": KERNELS
        + """
def make_simulator(steps):
    a, b = grad(), grad()

    def simulate(k, loss):
        x, y = a, b
        for _ in range(steps):
            wp.launch(step, 3, [x, k], [y])
            x, y = y, x  # here
        wp.launch(total, 3, [x], [loss])

    return simulate


def main():
    simulate = make_simulator(9)
    k = wp.array([0.2], dtype=float, requires_grad=True)
    loss = grad(1)
    with wp.Tape() as tape:
        simulate(k, loss)
    tape.backward(loss)


if __name__ == "__main__":
    main()
"""
    },
    "two files": {
        "sim.py": KERNELS
        + """
class Solver:
    def __init__(self):
        self.k = wp.array([0.2], dtype=float, requires_grad=True)

    def step(self, state_in, state_out, dt=0.1):
        wp.launch(step, dim=3, inputs=[state_in["q"], self.k], outputs=[state_out["q"]])
""",
        "program.py": """\
import warp as wp
from sim import Solver, grad, total

solver = Solver()
state_0, state_1 = {"q": grad()}, {"q": grad()}
loss = grad(1)

if __name__ == "__main__":
    tape = wp.Tape()
    with tape:
        for frame in range(4):
            for sub in range(8):
                solver.step(state_0, state_1)
                (state_0, state_1) = (state_1, state_0)  # here
        wp.launch(total, dim=3, inputs=[state_0["q"]], outputs=[loss])
    tape.backward(loss)
""",
    },
    "package": {
        "fit/__init__.py": "from .core import *\n",
        "fit/core.py": "from . import kernels\nfrom .kernels import grad, total\n\n\nclass Sim:\n"
        "    def run(self, k, loss, steps=7):\n"
        "        import warp as wp\n\n"
        "        a, b = grad(), grad()\n"
        "        for _ in range(steps):\n"
        "            wp.launch(kernels.step, 3, [a, k], [b])\n"
        "            a, b = b, a  # here\n"
        "        wp.launch(total, 3, [a], [loss])\n",
        "fit/kernels.py": KERNELS,
        "program.py": """\
import warp as wp
import fit

if __name__ == "__main__":
    k = wp.array([0.2], dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    sim = fit.Sim()
    with wp.Tape() as tape:
        sim.run(k, loss)
    tape.backward(loss)
""",
    },
    "library function nobody calls": {
        "program.py": KERNELS
        + """
def rollout(a, b, k, loss, steps):
    tape = wp.Tape()
    with tape:
        for _ in range(steps):
            wp.launch(step, 3, [a, k], [b])
            a, b = b, a  # here
        wp.launch(total, 3, [a], [loss])
    tape.backward(loss)
"""
    },
    "a tape handed in": {
        "program.py": KERNELS
        + """
class Sim:
    def __init__(self):
        self.k = wp.array([0.2], dtype=float, requires_grad=True)
        self.a, self.b, self.loss = grad(), grad(), grad(1)

    def gradient(self, tape, steps):
        with tape:
            for _ in range(steps):
                wp.launch(step, 3, [self.a, self.k], [self.b])
                self.a, self.b = self.b, self.a  # here
            wp.launch(total, 3, [self.a], [self.loss])
        tape.backward(self.loss)
"""
    },
    "torch function": {
        "program.py": "import torch\n"
        + KERNELS
        + """
class Rollout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k, steps):
        ctx.x, ctx.k = wp.from_torch(x), wp.from_torch(k)
        a = wp.clone(ctx.x)
        b = wp.zeros_like(a)
        ctx.tape = wp.Tape()
        with ctx.tape:
            for _ in range(steps):
                wp.launch(step, 3, [a, ctx.k], [b])
                a, b = b, a  # here
        ctx.out = a
        return wp.to_torch(a)

    @staticmethod
    def backward(ctx, adjoint):
        ctx.out.grad = wp.from_torch(adjoint)
        ctx.tape.backward()
        return wp.to_torch(ctx.x.grad), wp.to_torch(ctx.k.grad), None
"""
    },
    "states of a simulation library": {
        "program.py": "import newton\n"
        + KERNELS
        + """
class Example:
    def __init__(self, builder):
        self.model = newton.ModelBuilder().finalize(requires_grad=True)
        self.solver = newton.solvers.SolverXPBD(self.model)
        self.state_0, self.state_1 = self.model.state(), self.model.state()
        self.control = self.model.control()
        self.loss = grad(1)

    def forward(self):
        for _ in range(30):
            self.state_0.clear_forces()
            contacts = self.model.collide(self.state_0)
            self.solver.step(self.state_0, self.state_1, self.control, contacts, 0.01)
            self.state_0, self.state_1 = self.state_1, self.state_0  # here
        wp.launch(total, 3, [self.state_0.particle_q], [self.loss])

    def step(self):
        with wp.Tape() as tape:
            self.forward()
        tape.backward(self.loss)
"""
    },
    "behind an undecided branch": {
        "program.py": KERNELS
        + """
class Example:
    def __init__(self):
        self.k = wp.array([0.2], dtype=float, requires_grad=True)
        self.a, self.b, self.loss = grad(), grad(), grad(1)
        self.use_cuda_graph = wp.get_device().is_cuda
        if self.use_cuda_graph:
            with wp.ScopedCapture() as capture:
                self.forward_backward()
            self.graph = capture.graph

    def forward_backward(self):
        self.tape = wp.Tape()
        with self.tape:
            for _ in range(100):
                wp.launch(step, 3, [self.a, self.k], [self.b])
                self.a, self.b = self.b, self.a  # here
            wp.launch(total, 3, [self.a], [self.loss])
        self.tape.backward(self.loss)

    def train(self):
        if self.use_cuda_graph:
            wp.capture_launch(self.graph)
        else:
            self.forward_backward()
        self.tape.zero()


if __name__ == "__main__":
    with wp.ScopedDevice("cpu"):
        example = Example()
        for _ in range(10):
            example.train()
"""
    },
    "other import styles": {
        "program.py": """\
import warp
from warp import Tape, array, kernel, launch, tid, zeros as empty_grid


@kernel
def grow(x: array(dtype=float), k: "warp.array(dtype=float)", y: warp.array[float]):
    i = tid()
    y[i] = x[i] + k[0] * warp.sin(x[i])


@kernel
def total(x: array(dtype=float), loss: array(dtype=float)):
    warp.atomic_add(loss, 0, x[tid()])


k = warp.full(1, 0.2, dtype=float, requires_grad=True)
a = empty_grid(shape=3, dtype=float, requires_grad=True)
b = empty_grid(shape=3, dtype=float, requires_grad=True)
loss = empty_grid(1, float, requires_grad=True)
tape = Tape()
with tape:
    for turn in range(5):
        launch(kernel=grow, dim=3, inputs=[a, k], outputs=[b])
        a, b = b, a  # here
    launch(kernel=total, dim=3, inputs=[a, loss])
tape.backward(loss)
"""
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_found_in_every_shape(name, findings):
    files = VARIANTS[name]
    (finding,) = findings(files)
    assert finding.rule == "WL103"
    lines = files[finding.location.file].splitlines()
    assert "# here" in lines[finding.location.line - 1]


def test_the_message_names_buffer_kernel_and_lines(findings):
    (finding,) = findings(VARIANTS["flat script"])
    assert finding.buffer in ("a", "b")
    assert f"`{finding.buffer}`" in finding.message
    assert "`step`" in finding.message
    assert finding.message[0] == "`" or finding.message[0].islower()
    assert finding.help
    assert {"the backward pass runs here"} <= {r.message for r in finding.related}


def test_the_probe_is_told_the_overwriting_statement(findings):
    (finding,) = findings(VARIANTS["flat script"])
    (site,) = finding.request.sites
    text = VARIANTS["flat script"]["program.py"].splitlines()
    assert "wp.launch(step" in text[site.line - 1]
    assert finding.request.counterfactual.value == "overwrite"
