"""Code that looks like a gradient bug and is right: all of it must stay silent."""

from __future__ import annotations

import pytest

LOOK_ALIKES = {
    "states behind properties that index lists by a counter": """
    class Sim:
        def __init__(self, steps=12):
            self.steps = steps
            self.k = wp.array([0.2], dtype=float, requires_grad=True)
            self.states = [grad() for _ in range(steps + 1)]
            self.loss = grad(1)
            self.count = 0

        @property
        def state(self):
            return self.states[self.count]

        @property
        def next_state(self):
            return self.states[self.count + 1]

        def forward(self):
            self.count = 0
            for _ in range(self.steps):
                wp.launch(step, 3, [self.state, self.k], [self.next_state])
                self.count += 1
            wp.launch(total, 3, [self.state], [self.loss])

        def train(self):
            for _ in range(5):
                tape = wp.Tape()
                with tape:
                    self.forward()
                tape.backward(self.loss)
                tape.zero()

    Sim().train()
    """,
    "players that take turns on trajectories kept in one array each": """
    @wp.kernel
    def move(p: wp.array(dtype=float), u: wp.array(dtype=float), t: int):
        p[t + 1] = p[t] + wp.tanh(u[t])

    p, e, up, ue, loss = grad(9), grad(9), grad(8), grad(8), grad(1)
    for _ in range(4):
        for me in (up, ue):
            loss.zero_()
            tape = wp.Tape()
            with tape:
                for t in range(8):
                    wp.launch(move, 1, [p, up, t])
                    wp.launch(move, 1, [e, ue, t])
                wp.launch(total, 9, [p], [loss])
                wp.launch(total, 9, [e], [loss])
            tape.backward(loss)
            me.assign(me.numpy() - 0.1 * me.grad.numpy())
            tape.zero()
    """,
    "clamp in place after backward": """
    @wp.kernel
    def clamp(x: wp.array(dtype=float)):
        i = wp.tid()
        if x[i] > 1.0:
            x[i] = 1.0

    x, y, loss = grad(), grad(), grad(1)
    for _ in range(3):
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        wp.launch(clamp, 3, [x])
        tape.zero()
    """,
    "swap in an untaped loop": """
    k = wp.array([0.2], dtype=float)
    a, b = grad(), grad()
    for _ in range(10):
        wp.launch(step, 3, [a, k], [b])
        a, b = b, a
    x, loss = grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    "fresh contacts each substep": """
    def collide(x):
        contacts = grad()
        wp.launch(square, 3, [x], [contacts])
        return contacts

    k, loss = grad(1), grad(1)
    x = grad()
    with wp.Tape() as tape:
        for _ in range(6):
            c = collide(x)
            nxt = wp.empty_like(x)
            wp.launch(step, 3, [c, k], [nxt])
            x = nxt
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    "control rebound to frame slices": """
    class Control:
        pass

    frames = 6
    plan = wp.zeros(3 * frames, dtype=float, requires_grad=True)
    control = Control()
    states = [grad() for _ in range(frames + 1)]
    loss = grad(1)
    with wp.Tape() as tape:
        for f in range(frames):
            control.act = plan[3 * f : 3 * (f + 1)]
            wp.launch(step, 3, [states[f], control.act], [states[f + 1]])
        wp.launch(total, 3, [states[-1]], [loss])
    tape.backward(loss)
    """,
    "flat time offsets in one array": """
    @wp.kernel
    def march(x: wp.array(dtype=float), t: int, n: int, k: wp.array(dtype=float)):
        i = wp.tid()
        x[(t + 1) * n + i] = x[t * n + i] + k[0] * x[t * n + i] * x[t * n + i]

    k, loss = grad(1), grad(1)
    history = wp.zeros(30, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for t in range(9):
            wp.launch(march, 3, [history, t, 3, k])
        wp.launch(total, 30, [history], [loss])
    tape.backward(loss)
    """,
    "time as first index of one array": """
    @wp.kernel
    def march(x: wp.array2d(dtype=float), t: int, k: wp.array(dtype=float)):
        i = wp.tid()
        x[t + 1, i] = x[t, i] + k[0] * wp.sin(x[t, i])

    k, loss = grad(1), grad(1)

    def run(steps):
        history = wp.zeros((steps + 1, 3), dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for t in range(steps):
                wp.launch(march, 3, [history, t, k])
            wp.launch(total, 3, [history[steps]], [loss])
        tape.backward(loss)

    run(20)
    """,
    "row views of one array": """
    k, loss = grad(1), grad(1)
    rows = wp.zeros((9, 3), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for t in range(8):
            wp.launch(step, 3, [rows[t], k], [rows[t + 1]])
        wp.launch(total, 3, [rows[8]], [loss])
    tape.backward(loss)
    """,
    "conditional alias of the output": """
    import sys

    k, loss = grad(1), grad(1)
    x, scratch = grad(), grad()
    out = scratch if len(sys.argv) > 1 else wp.empty_like(x)
    with wp.Tape() as tape:
        wp.launch(step, 3, [x, k], [out])
        wp.launch(total, 3, [out], [loss])
    tape.backward(loss)
    """,
    "checkpoint segments with seeded grad": """
    k, loss = grad(1), grad(1)
    starts = [grad() for _ in range(4)]
    for s in range(3):
        wp.launch(step, 3, [starts[s], k], [starts[s + 1]])
    adjoint = None
    for s in reversed(range(3)):
        tape = wp.Tape()
        with tape:
            out = grad()
            wp.launch(step, 3, [starts[s], k], [out])
            if s == 2:
                wp.launch(total, 3, [out], [loss])
        if s == 2:
            tape.backward(loss)
        else:
            out.grad.assign(adjoint)
            tape.backward()
        adjoint = starts[s].grad.numpy()
    """,
    "initial copies off the tape": """
    x0 = wp.array([1.0, 2.0, 3.0], dtype=float)
    k, loss = grad(1), grad(1)
    x, y = grad(), grad()
    for _ in range(4):
        wp.copy(x, x0)
        y.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(step, 3, [x, k], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        tape.zero()
    """,
    "atomic_sub damping": """
    @wp.kernel
    def damp(v: wp.array(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_sub(v, i, c[0] * 0.1)

    v, c, loss = grad(), grad(1), grad(1)
    with wp.Tape() as tape:
        for _ in range(5):
            wp.launch(damp, 3, [v, c])
        wp.launch(total, 3, [v], [loss])
    tape.backward(loss)
    """,
    "the same state as in and out without a tape": """
    k, loss = grad(1), grad(1)
    x = grad()
    for _ in range(5):
        wp.launch(step, 3, [x, k], [x])
    with wp.Tape() as tape:
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    "one recording and many backwards": """
    x, y = grad(), grad()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    for row in range(50):
        seed = np.zeros(3, dtype=np.float32)
        seed[row % 3] = 1.0
        tape.backward(grads={y: wp.array(seed, dtype=float)})
        tape.zero()
    """,
    "overwritten and read again within one kernel": """
    @wp.kernel
    def both(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 2.0 * x[i]
        z[i] = y[i] * y[i]

    x, y, z, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(both, 3, [x, y, z])
        wp.launch(total, 3, [z], [loss])
    tape.backward(loss)
    """,
    "a = a + b into a buffer that was just cleared": """
    @wp.kernel
    def add(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = a[i] + b[i]

    a, b, loss = grad(), grad(), grad(1)
    for _ in range(3):
        tape = wp.Tape()
        with tape:
            a.zero_()
            wp.launch(add, 3, [a, b])
            wp.launch(total, 3, [a], [loss])
        tape.backward(loss)
        tape.zero()
    """,
    "a pool that clears data and grad": """
    class Pool:
        def __init__(self):
            self.free = [grad(), grad()]
            self.next = 0

        def take(self):
            buffer = self.free[self.next]
            self.next = (self.next + 1) % 2
            buffer.zero_()
            buffer.grad.zero_()
            return buffer

    pool, x, loss = Pool(), grad(), grad(1)
    for _ in range(4):
        tape = wp.Tape()
        with tape:
            y = pool.take()
            wp.launch(accumulate, 3, [x], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        tape.zero()
    """,
    "assign on the tape before any read": """
    class Objective:
        def __init__(self):
            self.x, self.y, self.loss = grad(), grad(), grad(1)

        def __call__(self, values):
            tape = wp.Tape()
            with tape:
                self.x.assign(values)
                self.loss.zero_()
                wp.launch(square, 3, [self.x], [self.y])
                wp.launch(total, 3, [self.y], [self.loss])
            tape.backward(self.loss)
            g = self.x.grad.numpy().copy()
            tape.zero()
            return g

    objective = Objective()
    point = np.zeros(3, dtype=np.float32)
    for _ in range(10):
        point -= 0.1 * objective(point)
    """,
    "truncated window with a detach": """
    def detach(a):
        return wp.array(a.numpy(), dtype=float, requires_grad=True)

    k, loss, x = grad(1), grad(1), grad()
    for window in range(5):
        x = detach(x)
        loss.zero_()
        tape = wp.Tape()
        with tape:
            for _ in range(4):
                nxt = wp.empty_like(x)
                wp.launch(step, 3, [x, k], [nxt])
                x = nxt
            wp.launch(total, 3, [x], [loss])
        tape.backward(loss)
        tape.zero()
    """,
    "linear steps through two buffers": """
    a, b, x, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 1.0], [a])
        for _ in range(6):
            wp.launch(scale, 3, [a, 0.5], [b])
            a, b = b, a
        wp.launch(total, 3, [a], [loss])
    tape.backward(loss)
    """,
    "a factor without gradient": """
    @wp.kernel
    def weigh(x: wp.array(dtype=float), w: wp.array(dtype=float)):
        i = wp.tid()
        x[i] *= w[i]

    x, y, loss = grad(), grad(), grad(1)
    w = wp.array([1.0, 2.0, 3.0], dtype=float)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [y])
        wp.launch(weigh, 3, [y, w])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    "cleared and then fully stored": """
    x, f, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        for _ in range(3):
            nxt = wp.empty_like(x)
            f.zero_()
            wp.launch(scale, 3, [x, -0.5], [f])
            wp.launch(scale, 3, [f, 0.3], [nxt])
            x = nxt
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    "buffers that carry no derivative": """
    x, loss = grad(), grad(1)
    counts = wp.zeros(3, dtype=int)
    view = wp.zeros(3, dtype=float)

    @wp.kernel
    def count(x: wp.array(dtype=float), counts: wp.array(dtype=int)):
        i = wp.tid()
        counts[i] = counts[i] + 1

    with wp.Tape() as tape:
        for _ in range(3):
            counts.zero_()
            wp.launch(count, 3, [x, counts])
            wp.copy(view, x)
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    "what is not known": """
    import somewhere

    state = somewhere.load()
    loss = grad(1)
    with wp.Tape() as tape:
        somewhere.simulate(state, loss)
        for a, b in somewhere.pairs():
            wp.launch(step, 3, [a, state.k], [b])
    tape.backward(loss)
    """,
    "a state of a simulation library for each step": """
    import newton

    model = newton.ModelBuilder().finalize(requires_grad=True)
    solver = newton.solvers.SolverXPBD(model)
    states = [model.state() for _ in range(31)]
    loss = grad(1)
    with wp.Tape() as tape:
        for t in range(30):
            states[t].clear_forces()
            solver.step(states[t], states[t + 1], model.control(), None, 0.01)
        wp.launch(total, 3, [states[-1].particle_q], [loss])
    tape.backward(loss)
    """,
    "opposite arms of a branch": """
    import somewhere

    x, y, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        if somewhere.flag:
            wp.launch(square, 3, [x], [y])
        else:
            wp.launch(scale, 3, [loss, 1.0], [x])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    "everything after backward": """
    @wp.kernel
    def descend(p: wp.array(dtype=float), g: wp.array(dtype=float)):
        i = wp.tid()
        p[i] = p[i] - 0.01 * g[i]

    p, y, loss = grad(), grad(), grad(1)
    for _ in range(3):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [p], [y])
            wp.launch(total, 3, [y], [loss])
        loss.zero_()
        seen = y.numpy().copy()
        seen[:] = 0.0
        print(y.numpy().sum(), seen)
        tape.backward(loss)
        wp.launch(descend, 3, [p, p.grad])
        y.fill_(0.0)
        y.numpy()[:] = 1.0
        wp.copy(y, p)
        tape.zero()
    """,
    "the loss scaled and read at the end of the tape": """
    p, y, loss = grad(), grad(), grad(1)
    report = wp.zeros(1, dtype=float)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
        wp.launch(accumulate, 1, [loss], [report])
        wp.launch(scale, 1, [loss, 0.5], [report])
    tape.backward(loss)
    """,
    "a recording that was thrown away": """
    p, y, loss = grad(), grad(), grad(1)
    tape = wp.Tape()
    with tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
    tape.reset()
    y.zero_()
    with tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    "a write in the arm that returns": """
    import sys

    def run(p, y, loss):
        with wp.Tape() as tape:
            wp.launch(square, 3, [p], [y])
            wp.launch(total, 3, [y], [loss])
        if len(sys.argv) > 2:
            y.zero_()
            return
        if len(sys.argv) > 1:
            y.zero_()
        else:
            tape.backward(loss)

    run(grad(), grad(), grad(1))
    """,
    "two tapes, each with its backward": """
    p, y, one, two = grad(), grad(), grad(1), grad(1)
    for loss in (one, two):
        with wp.Tape() as tape:
            wp.launch(square, 3, [p], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
    """,
    "a copy that puts back what is there": """
    x, a, b, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        saved = wp.clone(a)
        wp.launch(square, 3, [a], [b])
        wp.copy(a, saved)
        wp.launch(total, 3, [b], [loss])
    tape.backward(loss)
    """,
    "a copy onto what was read linearly": """
    x, a, b, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        wp.launch(scale, 3, [a, 3.0], [b])
        wp.copy(a, b)
        wp.launch(total, 3, [a], [loss])
    tape.backward(loss)
    """,
    "updates in place whose adjoint needs no value": """
    @wp.kernel
    def linear(a: wp.array(dtype=float), b: wp.array(dtype=float)):
        i = wp.tid()
        a[i] = a[i] + b[i]
        a[i] *= 0.5
        a[i] = -a[i]

    @wp.kernel
    def local(a: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        v = a[i]
        v *= v
        v = v / wp.sqrt(1.0 + v * v)
        y[i] = v

    @wp.kernel
    def swap(a: wp.array(dtype=float)):
        t = a[0]
        a[0] = a[1]
        a[1] = t

    a, b, y, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(linear, 3, [a, b])
        wp.launch(swap, 1, [a])
        wp.launch(local, 3, [a, y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    "limits that lead to themselves again": """
    @wp.kernel
    def both_sides(a: wp.array(dtype=float), c: float):
        i = wp.tid()
        a[i] = wp.max(wp.min(a[i], c), 0.1)

    @wp.kernel
    def under_test(a: wp.array(dtype=float), c: float):
        i = wp.tid()
        if a[i] >= c:
            a[i] = c

    @wp.kernel
    def chosen(a: wp.array(dtype=float), c: float):
        i = wp.tid()
        a[i] = wp.where(a[i] >= c, c, a[i])

    @wp.kernel
    def local(a: wp.array(dtype=float), c: float):
        i = wp.tid()
        v = a[i]
        if v >= c:
            v = c
        a[i] = v

    x, a, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        for limit in (both_sides, under_test, chosen, local):
            wp.launch(limit, 3, [a, 1.0])
        wp.launch(total, 3, [a], [loss])
    tape.backward(loss)
    """,
    "one arm reads, the other writes": """
    @wp.kernel
    def either(x: wp.array(dtype=float), m: wp.array(dtype=int), y: wp.array(dtype=float)):
        i = wp.tid()
        if m[i] == 0:
            y[i] = x[i] * x[i]
            return
        x[i] = 0.0

    m = wp.zeros(3, dtype=int)
    p, x, y, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [p, 2.0], [x])
        wp.launch(either, 3, [x, m, y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
}


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_silent(name, findings):
    assert findings(LOOK_ALIKES[name].replace("\n    ", "\n")) == []
