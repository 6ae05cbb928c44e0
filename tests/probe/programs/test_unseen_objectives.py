"""Custom adjoints that are wrong behind objectives which no finite difference can see."""

from __future__ import annotations

import pytest
from probe_programs import check

pytestmark = pytest.mark.probe

FILES = {
    "plant/__init__.py": "",
    "bank.py": """\
# Savings of a bank: a large fixed capital is part of the loss.

import numpy as np
import warp as wp


@wp.func
def interest(x: float):
    return x * wp.sqrt(1.0 + x)


@wp.func_grad(interest)
def adj_interest(x: float, adj_ret: float):
    wp.adjoint[x] += (wp.sqrt(1.0 + x) + x / wp.sqrt(1.0 + x)) * adj_ret


@wp.kernel
def capital(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, 3.0e7 + 1.0e-2 * interest(x[i]))


x = wp.array(np.linspace(0.4, 1.2, 8), dtype=float, requires_grad=True)
for it in range(5):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(capital, dim=8, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
""",
    "plant/leaf.py": """\
import warp as wp


@wp.struct
class Leaves:
    area: wp.array(dtype=float)
    offset: float


@wp.func
def soft(v: wp.vec2):
    return wp.log(1.0 + wp.exp(v[0])) * v[1]


@wp.func_grad(soft)
def adj_soft(v: wp.vec2, adj_ret: float):
    s = 1.0 / (1.0 + wp.exp(-v[0]))
    wp.adjoint[v] += wp.vec2(s * adj_ret, wp.log(1.0 + wp.exp(v[0])) * adj_ret)


@wp.func
def growth(light: float, water: float):
    return soft(wp.vec2(light, water))


@wp.kernel
def grow(leaves: Leaves, light: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, leaves.offset + 1.0e-3 * growth(light[i], leaves.area[i]))
""",
    "garden.py": """\
# A garden as a class; the yield of other fields is added in.

import numpy as np
import warp as wp

from plant.leaf import Leaves, grow


class Garden:
    def __init__(self):
        self.leaves = Leaves()
        self.leaves.area = wp.array(np.linspace(0.5, 2.0, 6), dtype=float, requires_grad=True)
        self.leaves.offset = 4.0e6
        self.light = wp.array(np.linspace(-1.0, 1.0, 6), dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def step(self):
        self.loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(grow, dim=6, inputs=[self.leaves, self.light], outputs=[self.loss])
        tape.backward(self.loss)
        self.light.assign(self.light.numpy() - 0.1 * self.light.grad.numpy())
        tape.zero()


garden = Garden()
for it in range(5):
    garden.step()
""",
    "weather.py": """\
# A chaotic map over a long horizon.

import numpy as np
import warp as wp

STEPS = 60


@wp.func
def logistic(r: float, x: float):
    return r * x * (1.0 - x)


@wp.func_grad(logistic)
def adj_logistic(r: float, x: float, adj_ret: float):
    wp.adjoint[r] += x * (1.0 - x) * adj_ret
    wp.adjoint[x] += r * (1.0 - x) * adj_ret


@wp.kernel
def advance(r: wp.array(dtype=float), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = logistic(r[i], x[i])


@wp.kernel
def miss(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 0.5) * (x[i] - 0.5))


r = wp.array([3.9, 3.95, 3.99], dtype=float, requires_grad=True)
for it in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    x = [wp.array([0.2, 0.3, 0.4], dtype=float, requires_grad=True)]
    x += [wp.zeros(3, dtype=float, requires_grad=True) for _ in range(STEPS)]
    with wp.Tape() as tape:
        for t in range(STEPS):
            wp.launch(advance, dim=3, inputs=[r, x[t]], outputs=[x[t + 1]])
        wp.launch(miss, dim=3, inputs=[x[STEPS]], outputs=[loss])
    tape.backward(loss)
    r.assign(r.numpy() - 1.0e-20 * r.grad.numpy())
    tape.zero()
""",
}
# The same garden with the derivative that belongs to the function.
FILES["plant/right.py"] = FILES["plant/leaf.py"].replace(
    "wp.vec2(s * adj_ret,", "wp.vec2(s * v[1] * adj_ret,"
)
FILES["right.py"] = FILES["garden.py"].replace("plant.leaf", "plant.right")
WRONG = {
    "bank.py": ("bank.py", "def adj_interest(x: float, adj_ret: float):"),
    "garden.py": ("plant/leaf.py", "def adj_soft(v: wp.vec2, adj_ret: float):"),
    "weather.py": ("weather.py", "def adj_logistic(r: float, x: float, adj_ret: float):"),
}
"""A constant summed in, one through a struct and two functions of another module, a chaotic horizon."""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    directory = tmp_path_factory.mktemp("unseen")
    status, report = check(directory, FILES, "--jobs", "2")
    assert status == 0
    return report


def results(report, program: str) -> list[tuple[str, str, str, int]]:
    return sorted(
        (r["rule"], r["verdict"], r["location"]["file"], r["location"]["line"])
        for r in report["results"]
        if r["program"] == program and r["rule"] != "WL904"
    )


@pytest.mark.parametrize("program", WRONG)
def test_the_function_is_decided_by_itself(program, report):
    file, text = WRONG[program]
    line = FILES[file].splitlines().index(text) + 1
    ((rule, verdict, where, found),) = results(report, program)
    assert (rule, verdict, where) == ("WL402", "latent", file)
    assert found in (line - 1, line)


@pytest.mark.parametrize("program", [*WRONG, "right.py"])
def test_the_whole_gradient_is_said_to_be_unseen(program, report):
    (row,) = (row for row in report["programs"] if row["program"] == program)
    assert row["status"] == "inconclusive"
    assert "WL904" in {r["rule"] for r in report["results"] if r["program"] == program}


def test_a_right_adjoint_is_left_alone(report):
    assert results(report, "right.py") == []
