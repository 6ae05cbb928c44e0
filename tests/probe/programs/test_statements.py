"""Which statement of a kernel makes its adjoint wrong, where several may: the one whose change mends it."""

from __future__ import annotations

import pytest
from probe_programs import check

pytestmark = pytest.mark.probe

LOOP = """

x = wp.array([0.7, 1.1, 1.6], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, 3, [x, y])
        wp.launch(total, 3, [y, loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
"""
TOTAL = """

@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])

"""
FILES = {
    # Three functions deep and in another module; the loops of two others are harmless.
    "lib/inner.py": """\
import warp as wp


@wp.func
def harmless(x: wp.array(dtype=float), n: int):
    s = float(0.0)
    for j in range(n):
        s += x[j] * x[j]
    return s


@wp.func
def chain(x: wp.array(dtype=float), n: int):
    p = float(1.0)
    for j in range(n):
        p = p * x[j]
    return p
""",
    "lib/middle.py": """\
import warp as wp
from lib.inner import chain, harmless


@wp.func
def both(x: wp.array(dtype=float), n: int):
    return chain(x, n) + harmless(x, n)
""",
    "deep.py": """\
import numpy as np
import warp as wp
from lib.middle import both


@wp.kernel
def k(x: wp.array(dtype=float), n: int, loss: wp.array(dtype=float)):
    m = float(0.0)
    for j in range(n):
        m = wp.max(m, 0.2 * x[j])
    loss[0] = both(x, n) + m * m


x = wp.array([0.7, 1.1, 1.6], dtype=float, requires_grad=True)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, 1, [x, 3, loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
    "nan.py": """\
import numpy as np
import warp as wp


@wp.func
def size(v: wp.vec3):
    return wp.sqrt(wp.dot(v, v))


@wp.kernel
def k(x: wp.array(dtype=wp.vec3), q: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    a = wp.sqrt(q[i])
    wp.atomic_add(loss, 0, a + size(x[i]))


x = wp.array(np.array([[0.7, 1.1, 1.6], [1.0, 2.0, 1.0], [0.0, 0.0, 0.0]]), dtype=wp.vec3, requires_grad=True)
q = wp.array([1.0, 4.0, 2.0], dtype=float, requires_grad=True)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(k, 3, [x, q, loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    q.assign(q.numpy() - 0.01 * q.grad.numpy())
    tape.zero()
""",
    "lib/__init__.py": "",
    "comp.py": """\
import numpy as np
import warp as wp


@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    u = wp.vec3(x[i], 1.0, 2.0)
    u[0] = 0.0 * x[i] + u[0]
    v = wp.vec3(x[i], 2.0, 1.0)
    v[0] = v[0] * v[0]
    y[i] = 0.0001 * wp.dot(u, u) + wp.dot(v, v)
"""
    + TOTAL
    + LOOP,
    "sfield.py": """\
import numpy as np
import warp as wp


@wp.struct
class P:
    v: wp.vec3
    m: float


@wp.func
def fill(a: float):
    s = P()
    s.v[1] = a * a
    return s


@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    w = wp.vec3(x[i], 1.0, 1.0)
    w[2] = 3.0 * x[i]
    s = fill(x[i])
    y[i] = s.v[1] + w[2] + w[0]
"""
    + TOTAL
    + LOOP,
    "early.py": """\
import warp as wp


@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for j in range(x.shape[0]):
        s += 0.5 * x[j] * x[j]
    q = float(0.0)
    for j in range(x.shape[0]):
        if x[j] > 1.5:
            break
        q += x[j] * x[j]
    y[i] = q + s
"""
    + TOTAL
    + LOOP.replace("0.7, 1.1, 1.6", "0.7, 1.6, 1.1"),
}
FILES["later.py"] = """\
import numpy as np
import warp as wp


@wp.kernel
def highest(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = wp.max(x[0] * x[0], x[1] * x[1]) + x[0] * x[1]


x = wp.array([0.9, 0.5], dtype=float, requires_grad=True)
for it in range(4):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(highest, dim=1, inputs=[x], outputs=[loss])
    tape.backward(loss)
    step = x.numpy() - 0.01 * x.grad.numpy()
    x.assign(np.array([0.6, 0.6], dtype=np.float32) if it == 0 else step)
    tape.zero()
"""
FILES["slots.py"] = (
    """\
import warp as wp

counter = wp.zeros(1, dtype=int)


@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float), counter: wp.array(dtype=int)):
    i = wp.tid()
    slot = wp.atomic_add(counter, 0, 1)
    y[slot] = x[i] * x[i]
"""
    + TOTAL.replace("y[wp.tid()]", "y[wp.tid()] * float(wp.tid() + 1)")
    + LOOP.replace("[x, y]", "[x, y, counter]").replace("    loss =", "    counter.zero_()\n    loss =")
)
CONFIRMED = {
    "deep.py": ("WL303", "lib/inner.py", "p = p * x[j]"),
    "comp.py": ("WL302", "comp.py", "v[0] = v[0] * v[0]"),
    "nan.py": ("WL305", "nan.py", "return wp.sqrt(wp.dot(v, v))"),
    "sfield.py": ("WL302", "sfield.py", "s.v[1] = a * a"),
    "early.py": ("WL303", "early.py", "break"),
    "slots.py": ("WL403", "slots.py", "slot = wp.atomic_add(counter, 0, 1)"),
}
"""The statement that is to blame, by program."""
INNOCENT = {
    "deep.py": ("deep.py", "m = wp.max(m, 0.2 * x[j])"),
    "comp.py": ("comp.py", "u[0] = 0.0 * x[i] + u[0]"),
    "nan.py": ("nan.py", "a = wp.sqrt(q[i])"),
}
"""A statement of the same kernel that might have been, and is not."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of one run over all programs."""
    directory = tmp_path_factory.mktemp("statements")
    status, report = check(directory, FILES, "--show-dismissed", "--jobs", "2")
    assert status == 1
    return report["results"]


def line(file: str, text: str) -> int:
    (number,) = [n for n, line in enumerate(FILES[file].splitlines(), 1) if line.strip() == text]
    return number


@pytest.mark.parametrize("program", CONFIRMED)
def test_the_statement_that_is_to_blame(program, results):
    rule, file, text = CONFIRMED[program]
    found = [
        (r["rule"], r["location"]["file"], r["location"]["line"])
        for r in results
        if r["verdict"] == "confirmed" and r["program"] == program
    ]
    assert found == [(rule, file, line(file, text))]


@pytest.mark.parametrize("program", INNOCENT)
def test_the_one_beside_it_is_cleared(program, results):
    file, text = INNOCENT[program]
    (verdict,) = [
        r["verdict"]
        for r in results
        if r["location"]["file"] == file and r["location"]["line"] == line(file, text)
    ]
    assert verdict == "dismissed"


def seen(program: str, results) -> str:
    (result,) = [r for r in results if r["verdict"] == "confirmed" and r["program"] == program]
    return " ".join(related["message"] for related in result["related"])


def test_the_element_whose_adjoint_is_wrong(results):
    assert "measured at this launch (the adjoint of `x[2]` is 4, the derivative 7.2)" in seen(
        "sfield.py", results
    )


def test_the_slot_whose_adjoint_is_wrong(results):
    assert "(the adjoint of `x[2]` is 0, the derivative 9.6)" in seen("slots.py", results)


def test_a_corner_in_one_iteration_is_a_note_beside_the_verdict(results):
    told = {(r["rule"], r["verdict"]) for r in results if r["program"] == "later.py"}
    assert told == {("WL902", "note"), ("WL306", "note")}


def test_the_first_operation_and_element_that_is_not_finite(results):
    assert "the sqrt here is what makes it infinite or NaN (the adjoint of `x[2, 0]` is nan)" in seen(
        "nan.py", results
    )
