"""Each rule on the shapes it must find, at the line a reviewer would comment."""

from __future__ import annotations

import pytest

CASES = {
    "scratch array rewritten every step": (
        "WL101",
        """
    x, f, loss = grad(), grad(), grad(1)

    @wp.kernel
    def mul(a: wp.array(dtype=float), b: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = a[i] * b[i]

    with wp.Tape() as tape:
        for s in range(3):
            nxt = wp.empty_like(x)
            wp.launch(square, 3, [x], [f])  # here
            wp.launch(mul, 3, [f, x], [nxt])
            x = nxt
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    ),
    "in-place accumulation after a nonlinear read": (
        "WL101",
        """
    x, y, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(accumulate, 3, [y], [x])  # here
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    ),
    "write-back of a projection": (
        "WL102",
        """
    x, y, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.copy(x, y)  # here
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    ),
    "through a slice": (
        "WL101",
        """
    w = wp.array([9.0] * 4, dtype=float)
    x, a, y, loss = grad(4), grad(4), grad(4), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 4, [x, 2.0], [a])
        wp.launch(square, 4, [a], [y])
        wp.launch(scale, 2, [w[0:2], 1.0], [a[0:2]])  # here
        wp.launch(total, 4, [y], [loss])
    tape.backward(loss)
    """,
    ),
    "same array in and out": (
        "WL104",
        """
    k, x, a, loss = grad(1), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 1.0], [a])
        wp.launch(step, 3, [a, k], [a])  # here
        wp.launch(total, 3, [a], [loss])
    tape.backward(loss)
    """,
    ),
    "the last state carried by reference": (
        "WL104",
        """
    k = grad(1)
    states = [grad() for _ in range(4)]
    for frame in range(3):
        loss = grad(1)
        tape = wp.Tape()
        with tape:
            for s in range(3):
                wp.launch(step, 3, [states[s], k], [states[s + 1]])
            wp.launch(total, 3, [states[-1]], [loss])
        tape.backward(loss)
        states[0] = states[-1]  # here
    """,
    ),
    "a list that repeats one state": (
        "WL104",
        """
    k, loss = grad(1), grad(1)
    states = [grad()] * 5
    with wp.Tape() as tape:
        for s in range(4):
            wp.launch(step, 3, [states[s], k], [states[s + 1]])  # here
        wp.launch(total, 3, [states[-1]], [loss])
    tape.backward(loss)
    """,
    ),
    "a shallow copy of a state": (
        "WL104",
        """
    import copy

    class State:
        def __init__(self):
            self.q = grad()

    k, loss = grad(1), grad(1)
    before = State()
    after = copy.copy(before)
    with wp.Tape() as tape:
        wp.launch(step, 3, [before.q, k], [after.q])  # here
        wp.launch(total, 3, [after.q], [loss])
    tape.backward(loss)
    """,
    ),
    "cleared and accumulated again": (
        "WL105",
        """
    x, f, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        for _ in range(3):
            nxt = wp.empty_like(x)
            f.zero_()  # here
            wp.launch(accumulate, 3, [x], [f])
            wp.launch(scale, 3, [f, 0.3], [nxt])
            x = nxt
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """,
    ),
    "filled after a nonlinear read": (
        "WL105",
        """
    x, a, b, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        wp.launch(square, 3, [a], [b])
        a.fill_(5.0)  # here
        wp.launch(total, 3, [b], [loss])
    tape.backward(loss)
    """,
    ),
    "assigned from numpy": (
        "WL105",
        """
    x, a, b, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        wp.launch(square, 3, [a], [b])
        a.assign(np.zeros(3, dtype=np.float32))  # here
        wp.launch(total, 3, [b], [loss])
    tape.backward(loss)
    """,
    ),
    "copied over from an array without gradient": (
        "WL102",
        """
    rest = wp.zeros(3, dtype=float)
    x, a, b, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        wp.launch(square, 3, [a], [b])
        wp.copy(a, rest)  # here
        wp.launch(total, 3, [b], [loss])
    tape.backward(loss)
    """,
    ),
    "an intermediate born without gradient": (
        "WL201",
        """
    x, loss = grad(), grad(1)
    y = wp.zeros(3, dtype=float)  # here
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    ),
    "a struct field born without gradient": (
        "WL201",
        """
    @wp.struct
    class State:
        q: wp.array(dtype=float)

    @wp.kernel
    def load(x: wp.array(dtype=float), s: State):
        i = wp.tid()
        s.q[i] = x[i] * x[i]

    x, loss = grad(), grad(1)
    s = State()
    s.q = wp.empty(3, dtype=float)  # here
    with wp.Tape() as tape:
        wp.launch(load, 3, [x, s])
        wp.launch(total, 3, [s.q], [loss])
    tape.backward(loss)
    """,
    ),
    "a copy into an array without gradient": (
        "WL201",
        """
    x, loss = grad(), grad(1)
    y = wp.zeros(3, dtype=float)  # here
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    """,
    ),
    "an in-place product": (
        "WL301",
        """
    @wp.kernel
    def damp(v: wp.array(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        v[i] *= 1.0 - c[i]  # here

    x, v, c, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        for _ in range(4):
            wp.launch(scale, 3, [x, 1.0], [v])
            wp.launch(damp, 3, [v, c])
        wp.launch(total, 3, [v], [loss])
    tape.backward(loss)
    """,
    ),
    "two tapes in one buffer": (
        "WL106",
        """
    p, y, one, two = grad(), grad(), grad(1), grad(1)
    with wp.Tape() as first:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [one])
    with wp.Tape() as second:
        wp.launch(scale, 3, [p, 3.0], [y])  # here
        wp.launch(total, 3, [y], [two])
    first.backward(one)
    second.backward(two)
    """,
    ),
    "an untaped launch before backward": (
        "WL106",
        """
    p, y, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
    wp.launch(scale, 3, [p, 3.0], [y])  # here
    tape.backward(loss)
    """,
    ),
    "through an alias of its memory": (
        "WL106",
        """
    p, y, loss = grad(), grad(), grad(1)
    alias = wp.array(ptr=y.ptr, dtype=float, shape=3)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
    alias.fill_(2.0)  # here
    tape.backward(loss)
    """,
    ),
    "in place through numpy": (
        "WL106",
        """
    p, y, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
    view = y.numpy()
    view *= 2.0  # here
    tape.backward(loss)
    """,
    ),
    "in place through torch": (
        "WL106",
        """
    p, y, loss = grad(), grad(), grad(1)
    tensor = wp.to_torch(y)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(total, 3, [y], [loss])
        tensor[:2].mul_(2.0)  # here
    tape.backward(loss)
    """,
    ),
    "a launch that asks not to be recorded": (
        "WL106",
        """
    p, y, z, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(square, 3, [y], [z])
        wp.launch(scale, 3, [p, 3.0], [y], record_tape=False)  # here
        wp.launch(total, 3, [z], [loss])
    tape.backward(loss)
    """,
    ),
    "an optimizer step as a kernel on the tape": (
        "WL107",
        """
    @wp.kernel
    def descend(p: wp.array(dtype=float), g: wp.array(dtype=float)):
        i = wp.tid()
        p[i] = p[i] - 0.01 * g[i]

    p, y, loss = grad(), grad(), grad(1)
    for _ in range(3):
        with wp.Tape() as tape:
            wp.launch(square, 3, [p], [y])
            wp.launch(total, 3, [y], [loss])
            wp.launch(descend, 3, [p, p.grad])  # here
        tape.backward(loss)
    """,
    ),
    "the state set back at the end of the tape": (
        "WL107",
        """
    start = wp.zeros(3, dtype=float)
    k, loss = grad(1), grad(1)
    states = [grad() for _ in range(4)]
    with wp.Tape() as tape:
        for t in range(3):
            wp.launch(step, 3, [states[t], k], [states[t + 1]])
        wp.launch(total, 3, [states[-1]], [loss])
        wp.launch(scale, 3, [start, 1.0], [states[1]])  # here
    tape.backward(loss)
    """,
    ),
    "a clamp that engages": (
        "WL108",
        """
    @wp.kernel
    def clamp(a: wp.array(dtype=float), c: float):
        i = wp.tid()
        if a[i] > c:
            a[i] = c  # here

    x, a, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [a])
        wp.launch(clamp, 3, [a, 1.0])
        wp.launch(total, 3, [a], [loss])
    tape.backward(loss)
    """,
    ),
    "a bounce that decides about another array": (
        "WL108",
        """
    @wp.kernel
    def bounce(p: wp.array(dtype=float), v: wp.array(dtype=float)):
        i = wp.tid()
        if p[i] < 0.0:
            p[i] = 0.0  # here
            v[i] = -0.5 * v[i]

    x, p, v, loss = grad(), grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(scale, 3, [x, 2.0], [p])
        wp.launch(scale, 3, [x, -1.0], [v])
        wp.launch(bounce, 3, [p, v])
        wp.launch(total, 3, [v], [loss])
    tape.backward(loss)
    """,
    ),
    "elements chosen by a list": (
        "WL108",
        """
    @wp.kernel
    def damp(ids: wp.array(dtype=int), v: wp.array(dtype=wp.vec3)):
        j = ids[wp.tid()]
        s = v[j]
        v[j] = s / wp.sqrt(1.0 + wp.dot(s, s))  # here

    @wp.kernel
    def energy(v: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
        i = wp.tid()
        wp.atomic_add(loss, 0, wp.dot(v[i], v[i]))

    ids = wp.array([0, 2], dtype=int)
    v, loss = wp.zeros(3, dtype=wp.vec3, requires_grad=True), grad(1)
    with wp.Tape() as tape:
        wp.launch(damp, 2, [ids, v])
        wp.launch(energy, 3, [v], [loss])
    tape.backward(loss)
    """,
    ),
    "the in-place product wins over the in-place update": (
        "WL301",
        """
    @wp.kernel
    def damp(v: wp.array(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        v[i] = v[i] * c[i]  # here
        v[i] = wp.sin(v[i])

    v, c, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(damp, 3, [v, c])
        wp.launch(total, 3, [v], [loss])
    tape.backward(loss)
    """,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_found_once_at_the_right_line(name, findings, tmp_path):
    rule, source = CASES[name]
    found = findings(source.replace("\n    ", "\n"))
    assert [f.rule for f in found] == [rule]
    text = (tmp_path / "program.py").read_text(encoding="utf-8").splitlines()
    assert "# here" in text[found[0].location.line - 1]
    assert found[0].request is not None
    assert found[0].request.sites


def test_activity_decides(findings):
    """Without a parameter upstream, or off the way to the objective, nothing is reported."""
    source = """
    x, y, z, loss = {x}, grad(), grad(), grad(1)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(scale, 3, [z, 1.0], [x])
        wp.launch(total, 3, [{used}], [loss])
    tape.backward(loss)
    """
    assert [f.rule for f in findings(source.format(x="grad()", used="y"))] == ["WL101"]
    assert findings(source.format(x="grad()", used="z")) == []
    assert findings(source.format(x="wp.zeros(3, dtype=float)", used="y")) == []


def test_two_files_one_finding_in_the_right_one(findings):
    kernels = """
    import warp as wp

    @wp.kernel
    def damp(v: wp.array(dtype=float), c: wp.array(dtype=float)):
        i = wp.tid()
        v[i] = v[i] * c[i]
    """
    program = """
    import warp as wp
    from kernels import damp

    v = wp.ones(3, dtype=float, requires_grad=True)
    c = wp.ones(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(damp, 3, [v, c])
    tape.backward(grads={v: wp.ones(3, dtype=float)})
    """
    (finding,) = findings({"kernels.py": kernels, "program.py": program})
    assert finding.rule == "WL301"
    assert finding.location.file == "kernels.py"
    assert finding.request.kernel == "damp"
    assert finding.request.kernel_file == "kernels.py"
    assert [s.file for s in finding.request.sites] == ["program.py"]


def test_the_same_input_gives_the_same_output(run):
    _, source = CASES["cleared and accumulated again"]
    assert run(source.replace("\n    ", "\n")) == run(source.replace("\n    ", "\n"))
