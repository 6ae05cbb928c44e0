"""Findings on the trees of Warp and Newton that were wrong when read by hand; all stay silent now."""

from __future__ import annotations

import pytest

SILENT = {
    "an accumulator read by the only thread there is": """
    @wp.kernel
    def replay(x: wp.array(dtype=float), s: wp.array(dtype=float), y: wp.array(dtype=float)):
        s[0] += x[0]
        y[0] = s[0] * s[0]

    x, s, y = grad(1), grad(1), grad(1)
    with wp.Tape() as tape:
        wp.launch(replay, dim=1, inputs=[x, s], outputs=[y])
    tape.backward(y)
    """,
    "elements of a tile": """
    @wp.kernel
    def rows(x: wp.array2d(dtype=float), v: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
        t = wp.tile_load(x, shape=(4, 4))
        t[0:2, :] = wp.tile_load(v, shape=(2, 4))
        t[3] = wp.tile_load(v, shape=(4,))
        wp.tile_store(y, t)

    x, v, y = grad((4, 4)), grad((4, 4)), grad((4, 4))
    with wp.Tape() as tape:
        wp.launch_tiled(rows, dim=[1], inputs=[x, v, y], block_dim=32)
    tape.backward(grads={y: wp.ones_like(y)})
    """,
    "parts of a transform, each assigned once": """
    @wp.kernel
    def place(x: wp.array(dtype=float), p: wp.array(dtype=wp.vec3), q: wp.array(dtype=wp.quat),
              y: wp.array(dtype=wp.transform)):
        i = wp.tid()
        a = wp.transform()
        a.p = p[i]
        a.q = q[i]
        b = wp.transform_identity()
        b[0] = 2.0 * x[i]
        b[1] = 3.0 * x[i]
        y[i] = a * b

    x, y = grad(), wp.zeros(3, dtype=wp.transform, requires_grad=True)
    p = wp.zeros(3, dtype=wp.vec3, requires_grad=True)
    q = wp.zeros(3, dtype=wp.quat, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(place, 3, [x, p, q, y])
    tape.backward(grads={y: wp.ones_like(y)})
    """,
    "a loop bound behind wp.constant is unrolled": """
    OCTAVES = wp.constant(4)

    @wp.kernel
    def waves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        v = wp.vec4(0.0, 0.0, 0.0, 0.0)
        for k in range(OCTAVES):
            v[k] = wp.sin(x[i] * float(k))
        y[i] = wp.dot(v, v)

    x, y, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(waves, 3, [x], [y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    "a backward call in either arm of a branch": """
    import other

    x, y = grad(), grad()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    if other.is_cuda:
        with other.raises(RuntimeError):
            tape.backward(grads={y: wp.ones_like(y)})
        print(x.grad.numpy())
    else:
        tape.backward(grads={y: wp.ones_like(y)})
        print(x.grad.numpy())
    """,
    "a graph that was captured and is replayed": """
    import other

    @wp.kernel
    def descend(x: wp.array(dtype=float), g: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] - 0.1 * g[i]

    class Example:
        def __init__(self):
            self.x, self.y, self.loss = grad(), grad(), grad(1)
            with wp.ScopedCapture() as capture:
                self.forward_backward()
            self.graph = capture.graph

        def forward_backward(self):
            self.tape = wp.Tape()
            with self.tape:
                self.y.zero_()
                wp.launch(accumulate, 3, [self.x], [self.y])
                wp.launch(total, 3, [self.y], [self.loss])
            self.tape.backward(self.loss)

        def step(self):
            if self.graph:
                wp.capture_launch(self.graph)
            else:
                self.forward_backward()
            wp.launch(descend, 3, [self.x, self.x.grad])
            self.tape.zero()

    example = Example()
    for _ in range(3):
        example.step()
    """,
    "a gradient read after a reset and a replay": """
    x, y = grad(), grad()
    with wp.ScopedCapture() as capture:
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads={y: wp.ones_like(y)})
    x.grad.zero_()
    wp.capture_launch(capture.graph)
    print(x.grad.numpy())
    """,
    "a gradient scaled in place": """
    x, y = grad(), grad()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    first = x.grad.numpy().copy()
    x.grad *= 0.5
    print(first, x.grad.numpy())
    """,
    "a test that looks whether the gradient is gone": """
    def assert_equal(a, b):
        assert (a == b).all()

    x, y = grad(), grad()
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    print(x.grad.numpy().copy())
    tape.zero()
    assert_equal(x.grad.numpy(), np.zeros(3))
    np.testing.assert_allclose(x.grad.numpy(), np.zeros(3))
    """,
    "a launch off the record with an adjoint of its own": """
    def solve(x, y, tape):
        wp.launch(square, 3, [x], [y], record_tape=False)

        def backward():
            wp.launch(scale, 3, [y.grad, 2.0, x.grad], record_tape=False)

        tape.record_func(backward, [x, y])

    x, y, loss = grad(), grad(), grad(1)
    tape = wp.Tape()
    with tape:
        solve(x, y, tape)
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    "a solution made by the host with an adjoint of its own": """
    def solve(x, y, tape):
        y.assign(np.sqrt(x.numpy()))

        def backward():
            x.grad.assign(x.grad.numpy() + 0.5 * y.grad.numpy() / y.numpy())

        tape.record_func(backward, [x, y])

    x, a, y, loss = grad(), grad(), grad(), grad(1)
    for _ in range(3):
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [a])
            solve(a, y, tape)
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        x.assign(x.numpy() - 0.1 * x.grad.numpy())
        tape.zero()
    """,
    "an evaluation before the one that is recorded": """
    @wp.kernel
    def mask(x: wp.array(dtype=float), fixed: wp.array(dtype=int), y: wp.array(dtype=float)):
        i = wp.tid()
        if fixed[i] == 0:
            y[i] = x[i]

    class Design:
        def __init__(self):
            self.x, self.y, self.loss = grad(), grad(), grad(1)
            self.fixed = wp.zeros(3, dtype=int)
            self.filter()

        def filter(self):
            wp.launch(mask, 3, [self.x, self.fixed], [self.y])

        def evaluate(self, values):
            self.x.assign(values)
            tape = wp.Tape()
            with tape:
                self.filter()
                wp.launch(total, 3, [self.y], [self.loss])
            tape.backward(self.loss)
            gradient = self.x.grad.numpy().copy()
            tape.zero()
            return gradient

    Design().evaluate(np.ones(3))
    """,
    "a tape that was handed in and holds what came before": """
    class Design:
        def __init__(self):
            self.x, self.y = grad(), grad()
            wp.launch(square, 3, [self.x], [self.y])

        def gradients(self, tape):
            loss = grad(1)
            with tape:
                wp.launch(total, 3, [self.y], [loss])
            tape.backward(loss)
            return self.x.grad.numpy()
    """,
    "two functions that nobody calls share an array": """
    x = grad()

    def first():
        y = grad()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads={y: wp.ones_like(y)})
        x.assign(x.numpy() - x.grad.numpy())

    def second():
        y = grad()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        tape.backward(grads={y: wp.ones_like(y)})
        x.assign(x.numpy() - x.grad.numpy())
    """,
}


@pytest.mark.parametrize("name", SILENT)
def test_silent(name, findings):
    assert findings(SILENT[name]) == []
