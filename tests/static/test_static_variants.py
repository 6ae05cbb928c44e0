"""One bug in the shapes that real host code gives it: one and the same finding, and none for its twin.

Every step writes its force into an array and moves the state with a term that is quadratic in it. The
bug is that all steps share one array (``ONE``); the twin has one for each step (``EACH``).
"""

from __future__ import annotations

import textwrap

import pytest

KERNELS = """\
import warp as wp

STEPS = 4


@wp.kernel
def push(x: wp.array(dtype=float), k: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    f[i] = k[0] * x[i]


@wp.kernel
def move(x: wp.array(dtype=float), f: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + f[i] * f[i]


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i])


def grad(n=3):
    return wp.zeros(n, dtype=float, requires_grad=True)
"""

# Each variant: files as text. ``ONE(a|b)`` stands for ``a`` in the bug and for ``b`` in its twin.
VARIANTS: dict[str, dict[str, str]] = {}


def variant(name: str, package: str = "", **files: str) -> None:
    """Keywords are modules; those in capitals belong to the package."""
    VARIANTS[name] = {
        (f"{package}/{key.lower()}.py" if key.isupper() else f"{key}.py"): textwrap.dedent(text)
        for key, text in files.items()
    }


variant(
    "flat script",
    main="""
    import warp as wp
    from kernels import *

    k, loss = grad(1), grad(1)
    states = [grad() for _ in range(STEPS + 1)]
    forces = [grad() for _ in range(STEPS)]
    with wp.Tape() as tape:
        for s in range(STEPS):
            wp.launch(push, 3, [states[s], k], [forces[ONE(0|s)]])  # here
            wp.launch(move, 3, [states[s], forces[ONE(0|s)]], [states[s + 1]])
        wp.launch(total, 3, [states[-1]], [loss])
    tape.backward(loss)
    """,
)

variant(
    "two files",
    physics="""
    import warp as wp
    import kernels

    def advance(x, k, f, y):
        wp.launch(kernels.push, 3, inputs=[x, k], outputs=[f])  # here
        wp.launch(kernels.move, 3, inputs=[x, f, y])
    """,
    main="""
    import warp as wp
    from kernels import STEPS, grad, total
    from physics import advance

    def main():
        k, loss, force = grad(1), grad(1), grad()
        x = grad()
        tape = wp.Tape()
        with tape:
            for s in range(STEPS):
                y = grad()
                advance(x, k, ONE(force|grad()), y)
                x = y
            wp.launch(total, 3, [x], [loss])
        tape.backward(loss)

    if __name__ == "__main__":
        main()
    """,
)

variant(
    "package with relative imports",
    package="sim",
    __INIT__="from .solver import Solver\nfrom . import state\n",
    STATE="""
    from kernels import STEPS, grad

    class State:
        def __init__(self):
            self.x = grad()
            self.f = grad()
    """,
    SOLVER="""
    import warp as wp
    from kernels import move, push
    from .state import State

    class Solver:
        def __init__(self, k):
            self.k = k

        def step(self, old: State, new: State, *, scratch):
            wp.launch(push, dim=3, inputs=[old.x, self.k], outputs=[scratch.f])  # here
            wp.launch(move, dim=3, inputs=[old.x, scratch.f], outputs=[new.x])
    """,
    main="""
    import warp as wp
    import sim
    from kernels import STEPS, grad, total

    k, loss = grad(1), grad(1)
    solver = sim.Solver(k)
    states = [sim.state.State() for _ in range(STEPS + 1)]
    with wp.Tape() as tape:
        for old, new in zip(states, states[1:]):
            solver.step(old, new, scratch=ONE(states[0]|old))
        wp.launch(total, 3, [states[-1].x], [loss])
    tape.backward(loss)
    """,
)

variant(
    "class with an inherited method",
    base="""
    import warp as wp
    from kernels import *

    class Base:
        def __init__(self):
            self.k, self.loss = grad(1), grad(1)
            self.setup()
            self.tape = wp.Tape()

        def setup(self):
            raise NotImplementedError

        def forward(self):
            for s in range(STEPS):
                self.step(s)
            wp.launch(total, 3, [self.states[STEPS]], [self.loss])

        def train(self):
            with self.tape:
                self.forward()
            self.tape.backward(self.loss)
            self.tape.reset()
    """,
    main="""
    import warp as wp
    from base import Base
    from kernels import *

    class Example(Base):
        def setup(self):
            self.states = [grad() for _ in range(STEPS + 1)]
            self.force = grad()
            self.forces = [grad() for _ in range(STEPS)]

        def step(self, s):
            wp.launch(push, 3, [self.states[s], self.k], [ONE(self.force|self.forces[s])])  # here
            wp.launch(move, 3, [self.states[s], ONE(self.force|self.forces[s])], [self.states[s + 1]])

    if __name__ == "__main__":
        example = Example()
        for _ in range(10):
            example.train()
    """,
)

variant(
    "dataclass of buffers",
    main="""
    import dataclasses
    from dataclasses import dataclass, field
    import warp as wp
    from kernels import *

    @dataclass
    class Buffers:
        x: wp.array
        f: wp.array = field(default_factory=grad)

    def run(k, loss, buffers):
        with wp.Tape() as tape:
            for s in range(STEPS):
                fresh = Buffers(grad())
                after = ONE(dataclasses.replace(buffers, x=fresh.x)|fresh)
                wp.launch(push, 3, [buffers.x, k], [buffers.f])  # here
                wp.launch(move, 3, [buffers.x, buffers.f], [after.x])
                buffers = after
            wp.launch(total, 3, [buffers.x], [loss])
        tape.backward(loss=loss)

    run(grad(1), grad(1), Buffers(x=grad()))
    """,
)

variant(
    "struct fields",
    main="""
    import warp as wp
    from kernels import STEPS, grad, total

    @wp.struct
    class Data:
        x: wp.array(dtype=float)
        f: wp.array(dtype=float)

    @wp.func
    def square(v: float):
        return v * v

    @wp.kernel
    def push(d: Data, k: wp.array(dtype=float)):
        i = wp.tid()
        d.f[i] = k[0] * d.x[i]

    @wp.kernel
    def move(d: Data, y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = d.x[i] + square(d.f[i])

    def make(force):
        d = Data()
        d.x = grad()
        d.f = force
        return d

    k, loss, force = grad(1), grad(1), grad()
    with wp.Tape() as tape:
        now = make(force)
        for s in range(STEPS):
            after = make(ONE(force|grad()))
            wp.launch(push, 3, inputs=[now, k])  # here
            wp.launch(move, 3, inputs=[now, after.x])
            now = after
        wp.launch(total, 3, [now.x], [loss])
    tape.backward(loss)
    """,
)

variant(
    "properties and a counter",
    main="""
    import warp as wp
    from kernels import *

    class Sim:
        def __init__(self):
            self.k, self.loss = grad(1), grad(1)
            self._states = [grad() for _ in range(STEPS + 1)]
            self._forces = [grad() for _ in range(ONE(1|STEPS))]
            self._at = 0

        @property
        def now(self):
            return self._states[self._at]

        @property
        def then(self):
            return self._states[self._at + 1]

        @property
        def force(self):
            return self._forces[self._at % len(self._forces)]

        def __call__(self):
            self._at = 0
            while self._at < STEPS:
                wp.launch(push, 3, [self.now, self.k], [self.force])  # here
                wp.launch(move, 3, [self.now, self.force], [self.then])
                self._at += 1
            wp.launch(total, 3, [self.now], [self.loss])

    sim = Sim()
    with wp.Tape() as tape:
        sim()
    tape.backward(sim.loss)
    """,
)

variant(
    "closures",
    main="""
    import warp as wp
    from kernels import *

    def make_step(k):
        force = grad()

        def step(x):
            nonlocal force
            ONE(pass|force = grad())
            y = wp.zeros_like(x)
            wp.launch(push, 3, [x, k], [force])  # here
            wp.launch(move, 3, [x, force], [y])
            return y

        return step

    def loss_of(step, x, loss):
        for _ in range(STEPS):
            x = step(x)
        wp.launch(total, 3, [x], [loss])

    k, loss = grad(1), grad(1)
    step = make_step(k)
    with wp.Tape() as tape:
        (lambda: loss_of(step, grad(), loss))()
    tape.backward(loss)
    """,
)

variant(
    "torch function",
    layer="""
    import torch
    import warp as wp
    from kernels import *

    class Rollout(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, buffers):
            ctx.tape = wp.Tape()
            ctx.x = wp.from_torch(x, requires_grad=True)
            ctx.buffers = buffers
            with ctx.tape:
                state = ctx.x
                for s in range(STEPS):
                    force = ONE(buffers["force"]|grad())
                    after = grad()
                    wp.launch(push, 3, [state, buffers["k"]], [force])  # here
                    wp.launch(move, 3, [state, force], [after])
                    state = after
            ctx.y = state
            return wp.to_torch(ctx.y)

        @staticmethod
        def backward(ctx, adjoint):
            ctx.y.grad = wp.from_torch(adjoint)
            ctx.tape.backward()
            return wp.to_torch(ctx.x.grad), None
    """,
    main="""
    import torch
    import warp as wp
    from kernels import grad
    from layer import Rollout

    if __name__ == "__main__":
        x = torch.zeros(3, requires_grad=True)
        buffers = {"k": grad(1), "force": grad()}
        optimizer = torch.optim.Adam([x])
        for _ in range(10):
            optimizer.zero_grad()
            loss = Rollout.apply(x, buffers).sum()
            loss.backward()
            optimizer.step()
    """,
)

variant(
    "generator",
    main="""
    import warp as wp
    from kernels import *

    def pairs(states):
        for s in range(len(states) - 1):
            yield states[s], states[s + 1]

    def arrays(n):
        yield from (grad() for _ in range(n))

    k, loss = grad(1), grad(1)
    states = list(arrays(STEPS + 1))
    force = grad()
    with wp.Tape() as tape:
        for s, (x, y) in enumerate(pairs(states)):
            f = ONE(force|grad())
            wp.launch(push, 3, [x, k], [f])  # here
            wp.launch(move, 3, [x, f], [y])
        wp.launch(total, 3, [states[-1]], [loss])
    tape.backward(loss)
    """,
)

variant(
    "context manager around the tape",
    main="""
    import contextlib
    import warp as wp
    from kernels import *

    class Recorder:
        def __init__(self, loss):
            self.tape, self.loss = wp.Tape(), loss

        def __enter__(self):
            self.tape.__enter__()
            return self

        def __exit__(self, *problem):
            self.tape.__exit__(*problem)
            self.tape.backward(self.loss)

    @contextlib.contextmanager
    def quiet(flag):
        old = flag
        try:
            yield old
        finally:
            flag = old

    k, loss, force = grad(1), grad(1), grad()
    with quiet(True), Recorder(loss) as recorder:
        x = grad()
        for s in range(STEPS):
            with wp.ScopedTimer("step"):
                f, y = ONE(force|grad()), grad()
                wp.launch(push, 3, [x, k], [f])  # here
                wp.launch(move, 3, [x, f], [y])
                x = y
        wp.launch(total, 3, [x], [recorder.loss])
    """,
)

variant(
    "tape opened by a generator function",
    main="""
    from contextlib import contextmanager
    import warp as wp
    from kernels import *

    @contextmanager
    def recording(loss):
        tape = wp.Tape()
        with tape:
            yield tape
        tape.backward(loss)

    k, loss, force = grad(1), grad(1), grad()
    with recording(loss):
        x = grad()
        for s in range(STEPS):
            f, y = ONE(force|grad()), grad()
            wp.launch(push, 3, [x, k], [f])  # here
            wp.launch(move, 3, [x, f], [y])
            x = y
        wp.launch(total, 3, [x], [loss])
    """,
)

variant(
    "functools.partial and a table of functions",
    main="""
    import functools
    import warp as wp
    from kernels import *

    def step(k, force, x, y):
        wp.launch(push, 3, [x, k], [force])  # here
        wp.launch(move, 3, [x, force], [y])

    METHODS = {"plain": step}
    k, loss, force = grad(1), grad(1), grad()
    bound = functools.partial(METHODS["plain"], k)
    with wp.Tape() as tape:
        x = grad()
        for s in range(STEPS):
            y = grad()
            functools.partial(bound, ONE(force|grad()))(x, y=y)
            x = y
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
)

variant(
    "copies of a state, shallow and deep",
    main="""
    import copy
    import warp as wp
    from kernels import *

    class State:
        def __init__(self, force):
            self.x, self.f = grad(), force

        def __deepcopy__(self, memo):
            return State(wp.zeros_like(self.f))

    k, loss = grad(1), grad(1)
    with wp.Tape() as tape:
        now = State(grad())
        for s in range(STEPS):
            after = copy.ONE(copy|deepcopy)(now)
            after.x = grad()
            wp.launch(push, 3, [now.x, k], [now.f])  # here
            wp.launch(move, 3, [now.x, now.f], [after.x])
            now = after
        wp.launch(total, 3, [now.x], [loss])
    tape.backward(loss)
    """,
)

variant(
    "kernels from a factory, kept in a class",
    main="""
    import warp as wp
    from kernels import STEPS, grad, total

    def make_kernels(power: int):
        @wp.func
        def law(v: float):
            return v * v * float(power)

        @wp.kernel
        def push(x: wp.array(dtype=float), k: wp.array(dtype=float), f: wp.array(dtype=float)):
            i = wp.tid()
            f[i] = k[0] * x[i]

        @wp.kernel
        def move(x: wp.array(dtype=float), f: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = x[i] + law(f[i])

        return push, move

    class Stepper:
        def __init__(self, k):
            self.kernels = dict(zip(("push", "move"), make_kernels(2)))
            self.k = k

        def run(self, name, arrays):
            wp.launch(self.kernels[name], dim=3, inputs=arrays)ONE(  # here|)

    k, loss, force = grad(1), grad(1), grad()
    stepper = Stepper(k)
    with wp.Tape() as tape:
        x = grad()
        for s in range(STEPS):
            f, y = ONE(force|grad()), grad()
            stepper.run("push", [x, stepper.k, f])
            stepper.run("move", [x, f, y])
            x = y
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
)

variant(
    "tape handed in, made under a condition",
    main="""
    import warp as wp
    from kernels import *

    def rollout(x, k, force, tape=None):
        own = tape is None
        if own:
            tape = wp.Tape()
        with tape:
            for s in range(STEPS):
                f, y = ONE(force|grad()), grad()
                wp.launch(push, 3, [x, k], [f])  # here
                wp.launch(move, 3, [x, f], [y])
                x = y
        return x, tape

    k, loss, force = grad(1), grad(1), grad()
    y, tape = rollout(grad(), k, force)
    with tape:
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
)

variant(
    "a base class with a slot for the tape, dispatch by name",
    main="""
    import warp as wp
    from kernels import *

    class Module:
        tape = None

        def __init__(self, **buffers):
            for name, value in buffers.items():
                setattr(self, name, value)

        def record(self, method, *args):
            self.tape = self.tape or wp.Tape()
            with self.tape:
                return getattr(self, method)(*args)

    class Chain(Module):
        def forward(self, x):
            for s in range(STEPS):
                f, y = ONE(self.force|grad()), grad()
                wp.launch(push, 3, [x, self.k], [f])  # here
                wp.launch(move, 3, [x, f], [y])
                x = y
            wp.launch(total, 3, [x], [self.loss])

    chain = Chain(k=grad(1), force=grad(), loss=grad(1))
    chain.record("forward", grad())
    chain.tape.backward(chain.loss)
    """,
)

variant(
    "named tuples and unpacking",
    main="""
    from typing import NamedTuple
    from collections import namedtuple
    import warp as wp
    from kernels import *

    class Buffers(NamedTuple):
        x: wp.array
        f: wp.array

    Pair = namedtuple("Pair", ["before", "after"])

    def launch_step(pair, k):
        x, f = pair.before
        wp.launch(push, 3, [x, k], [f])  # here
        wp.launch(move, 3, [x, f], [pair.after.x])

    k, loss, force = grad(1), grad(1), grad()
    chain = [Buffers(grad(), ONE(force|grad())) for _ in range(STEPS + 1)]
    with wp.Tape() as tape:
        for before, after in zip(chain[:-1], chain[1:]):
            launch_step(Pair(before, after=after), k)
        last, *_ = reversed(chain)
        wp.launch(total, 3, [last.x], [loss])
    tape.backward(loss)
    """,
)


def pick(text: str, number: int) -> str:
    """The bug (0) or the twin (1) of a text."""
    parts = []
    rest = text
    while "ONE(" in rest:
        before, _, rest = rest.partition("ONE(")
        depth, end = 1, 0
        while depth:
            depth += {"(": 1, ")": -1}.get(rest[end], 0)
            end += 1
        parts += [before, rest[: end - 1].split("|")[number]]
        rest = rest[end:]
    return "".join([*parts, rest])


def files(name: str, number: int) -> dict[str, str]:
    return {"kernels.py": KERNELS, **{n: pick(t, number) for n, t in VARIANTS[name].items()}}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_bug_is_found(name, findings):
    texts = files(name, 0)
    file, line = next(
        (n, k)
        for n, t in texts.items()
        for k, text in enumerate(t.splitlines(), 1)
        if text.endswith("# here")
    )
    (found,) = findings(texts)
    assert (found.rule, found.location.file, found.location.line) == ("WL101", file, line)
    assert "is overwritten by `push`" in found.message
    assert "the backward pass of `move`" in found.message


@pytest.mark.parametrize("name", VARIANTS)
def test_its_twin_is_silent(name, findings):
    assert findings(files(name, 1)) == []
