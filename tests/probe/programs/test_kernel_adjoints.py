"""Kernels whose own adjoint is wrong: proved by the defects of their launches, told from overwrites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from probe_programs import Told, run

pytestmark = pytest.mark.probe

KERNELS = """
import numpy as np
import warp as wp

F = wp.array(dtype=float)


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * x * adj_ret


@wp.kernel
def cubed(x: F, y: F):
    i = wp.tid()
    y[i] = cube(x[i])


@wp.kernel
def trimmed(x: F, y: F):
    i = wp.tid()
    v = wp.vec2(x[i], 1.0)
    v[0] = v[0] * v[0]
    y[i] = v[0]


@wp.kernel
def product(x: F, n: int, y: F):
    p = float(1.0)
    for j in range(n):
        p = p * x[j]
    y[0] = p


@wp.kernel
def rooted(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + x[i] * wp.sqrt(x[i] * x[i])


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def misfit(y: F, constant: float, loss: F):
    i = wp.tid()
    d = y[i] - 0.3
    wp.atomic_add(loss, 0, d * d + constant)


def zeros(n):
    return wp.zeros(n, dtype=float, requires_grad=True)


x = wp.array({x}, dtype=float, requires_grad=True)
for it in range(3):
    loss, y, z = zeros(1), zeros(4), zeros(4)
    with wp.Tape() as tape:
        {body}
        wp.launch(misfit, 4, [z, {constant}], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.002 * x.grad.numpy())
    tape.zero()
"""


def program(directory: Path, body: str, *, x: str = "[0.4, 0.7, 0.9, 1.2]", constant: float = 0.0) -> Path:
    path = directory / "program.py"
    lines = body.strip().replace("\n", "\n        ")
    text = KERNELS.replace("{x}", x).replace("{body}", lines).replace("{constant}", str(constant))
    path.write_text(text, encoding="utf-8")
    return path


def confirmed(told: Told) -> dict[str, dict[str, Any]]:
    """Confirmed causes by kernel."""
    assert told.episodes
    return {c["kernel"]: c for a in told.of("attribution") for c in a["confirmed"]}


def test_a_custom_adjoint_that_is_off_by_a_factor(tmp_path: Path) -> None:
    told = run(program(tmp_path, "wp.launch(cubed, 4, [x], [y])\nwp.launch(square, 4, [y], [z])"))
    (cause,) = confirmed(told).values()
    assert cause["kernel"] == "cubed"
    assert cause["alone"] < 0.01 < cause["leave_one_out"]
    assert [(r["what"], r["name"]) for r in cause["repairs"]] == [("custom-adjoint", "cube")]


def test_a_component_assigned_again(tmp_path: Path) -> None:
    told = run(program(tmp_path, "wp.launch(square, 4, [x], [y])\nwp.launch(trimmed, 4, [y], [z])"))
    (cause,) = confirmed(told).values()
    assert cause["kernel"] == "trimmed"
    assert [r["what"] for r in cause["repairs"]] == ["components"]


def test_a_product_in_a_loop(tmp_path: Path) -> None:
    told = run(program(tmp_path, "wp.launch(square, 4, [x], [y])\nwp.launch(product, 1, [y, 4], [z])"))
    (cause,) = confirmed(told).values()
    assert cause["kernel"] == "product"
    assert [r["what"] for r in cause["repairs"]] == ["unrolled"]


def test_two_kernels_are_both_named(tmp_path: Path) -> None:
    told = run(program(tmp_path, "wp.launch(cubed, 4, [x], [y])\nwp.launch(trimmed, 4, [y], [z])"))
    assert set(confirmed(told)) == {"cubed", "trimmed"}


def test_an_adjoint_that_becomes_nan(tmp_path: Path) -> None:
    told = run(
        program(
            tmp_path,
            "wp.launch(rooted, 4, [x], [y])\nwp.launch(square, 4, [y], [z])",
            x="[0.0, 0.7, 0.9, 1.2]",
        )
    )
    (cause,) = confirmed(told).values()
    assert (cause["kernel"], cause["finite"]) == ("rooted", False)
    assert cause["alone"] < 0.01


def test_an_overwrite_is_no_fault_of_the_kernel(tmp_path: Path) -> None:
    body = "wp.launch(square, 4, [x], [y])\nwp.launch(square, 4, [y], [z])\nwp.launch(square, 4, [x], [x])"
    told = run(program(tmp_path, body.replace("[x], [x]", "[z], [y]")))
    assert {c["kind_of_cause"] for a in told.of("attribution") for c in a["confirmed"]} == {"overwrite"}


def test_an_overwrite_and_a_kernel_are_told_apart(tmp_path: Path) -> None:
    body = "wp.launch(cubed, 4, [x], [y])\nwp.launch(square, 4, [y], [z])\nwp.launch(square, 4, [z], [y])"
    told = run(program(tmp_path, body))
    kinds = {(c["kind_of_cause"], c["kernel"]) for a in told.of("attribution") for c in a["confirmed"]}
    assert kinds == {("adjoint", "cubed"), ("overwrite", "square")}


def test_launches_decide_where_the_objective_cannot(tmp_path: Path) -> None:
    """A large constant in the loss: no change of it can be seen, but each launch can be tried."""
    body = "wp.launch(cubed, 4, [x], [y])\nwp.launch(square, 4, [y], [z])"
    told = run(program(tmp_path, body, constant=1.0e8))
    assert {outcome.split(":")[0] for outcome in told.outcomes["x"]} == {"inconclusive"}, told.outcomes
    (tests,) = told.of("launch-tests")
    rows = {row["kernel"]: row for row in tests["kernels"]}
    assert rows["cubed"]["wrong"] > 0
    assert [r["name"] for r in rows["cubed"]["repairs"]] == ["cube"]
    assert rows["square"]["wrong"] == 0
    assert "misfit" not in rows  # its own result hides its changes, too


FUNCTIONS = """
@wp.func
def bent(x: float):
    y = x * x
    if x < 0.0:
        y = 0.1 * x * x
    return y


@wp.func_grad(bent)
def adj_bent(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * adj_ret


@wp.func
def smooth(x: float):
    return wp.sqrt(1.0 + x * x)


@wp.func_grad(smooth)
def adj_smooth(x: float, adj_ret: float):
    wp.adjoint[x] += x / wp.sqrt(1.0 + x * x) * adj_ret


@wp.kernel
def bend(x: F, constant: float, y: F):
    i = wp.tid()
    y[i] = constant + bent(x[i]) + smooth(x[i])


"""


@pytest.mark.parametrize("constant, outcome", [("0.0", "agrees"), ("1.0e8", "inconclusive")])
def test_a_custom_adjoint_that_is_wrong_for_other_arguments(tmp_path: Path, constant, outcome) -> None:
    """The measured gradient does not show it: no argument is negative, or a constant hides everything."""
    path = program(tmp_path, f"wp.launch(bend, 4, [x, {constant}], [y])\nwp.launch(square, 4, [y], [z])")
    path.write_text(path.read_text().replace("def zeros(n)", f"{FUNCTIONS}def zeros(n)"), encoding="utf-8")
    told = run(path)
    assert {o.split(":")[0] for o in told.outcomes["x"]} == {outcome}, told.outcomes
    (tests,) = told.of("function-tests")
    rows = {row["function"]: row for row in tests["functions"]}
    assert rows["bent"]["wrong"]
    assert rows["bent"]["adjoint"] == pytest.approx(10.0 * rows["bent"]["derivative"], rel=0.01)
    assert not rows["smooth"]["wrong"], rows["smooth"]
