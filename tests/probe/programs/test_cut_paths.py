"""Paths that are cut between the parameter and the objective: which statement cuts them."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

pytestmark = pytest.mark.probe

FIRST = KERNELS.count("\n") + 1

LOOP = """
{setup}
x, target = array([0.5, 1.0]), 2.0
for it in range(2):
    loss = zeros(1)
{body}
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""


def program(body: str, setup: str = "") -> str:
    return LOOP.format(setup=setup.strip("\n"), body=body.strip("\n"))


def lines_of(text: str, marker: str) -> set[int]:
    return {n for n, line in enumerate(text.splitlines(), FIRST) if marker in line}


NOT_RECORDED = {
    "a launch before the tape": """
    y = zeros(2)
    wp.launch(square, 2, [x, 0.5], [y])  # cut
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "two launches before the tape": """
    y, z = zeros(2), zeros(2)
    wp.launch(square, 2, [x, 0.5], [y])  # cut
    wp.launch(square, 2, [y, 0.5], [z])  # cut
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "record_tape=False": """
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y], record_tape=False)  # cut
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "a prepared launch": """
    y = zeros(2)
    command = wp.launch(square, 2, [x, 0.5], [y], record_cmd=True)
    with wp.Tape() as tape:
        command.launch()  # cut
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "a prepared launch with another array": """
    y = zeros(2)
    command = wp.launch(square, 2, [array([9.0, 9.0]), 0.5], [y], record_cmd=True)
    command.set_param_at_index(0, x)
    with wp.Tape() as tape:
        command.launch()  # cut
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "the initial state copied before the tape": """
    y, z = zeros(2), zeros(2)
    wp.copy(y, x)  # cut
    with wp.Tape() as tape:
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "half of the state copied before the tape": """
    y, z = array([1.0, 1.0]), zeros(2)
    wp.copy(y, x, 1, 0, 1)  # cut
    with wp.Tape() as tape:
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "a clone before the tape": """
    y, z = wp.clone(x), zeros(2)  # cut
    with wp.Tape() as tape:
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "the loss launched behind the tape": """
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
    wp.launch(misfit, 2, [y, target], [loss])  # cut
""",
    "a native sum": """
    y, z = zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.utils.array_sum(y, out=loss)  # cut
""",
    "a native inner product": """
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.utils.array_inner(y, x, out=loss)  # cut
""",
    "a native scan": """
    y, z = zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.utils.array_scan(y, z, inclusive=False)  # cut
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "elements picked by an index": """
    y, z = zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.copy(z, y[wp.array([1, 0], dtype=int)])  # cut
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "elements stored by an index": """
    y, z = zeros(2), zeros(3)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.copy(z[wp.array([2, 0], dtype=int)], y)  # cut
        wp.launch(misfit, 3, [z, target], [loss])
""",
    "picked elements laid out anew": """
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        z = y[wp.array([1, 1, 0], dtype=int)].contiguous()  # cut
        wp.launch(misfit, 3, [z, target], [loss])
""",
    "overwritten since": """
    y, z = zeros(2), zeros(2)
    wp.launch(square, 2, [x, 0.5], [y])  # cut
    wp.launch(square, 2, [y, 0.5], [z])  # cut
    y.fill_(7.0)
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [z, target], [loss])
""",
}


@pytest.mark.parametrize("body", NOT_RECORDED.values(), ids=NOT_RECORDED)
def test_what_no_tape_recorded(body: str, tmp_path: Path) -> None:
    text = program(body)
    told = run(write(tmp_path, text))
    assert "differs" in told.outcomes["x"]
    assert {kind for kind, _ in told.confirmed} == {"not-recorded"}
    assert {line for _, line in told.confirmed} == lines_of(text, "# cut")


SOLVER = """
from warp.optim.linear import cg

A = wp.array([[4.0, 1.0], [1.0, 3.0]], dtype=float)


def adjoint():
    rest = wp.zeros(2, dtype=float)
    cg(A, z.grad, rest)
    y.grad.assign(y.grad.numpy() + rest.numpy())
    z.grad.zero_()
"""
SOLVED = """
    y, z = zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        cg(A, y, z)  # cut{adjoint}
        wp.launch(misfit, 2, [z, target], [loss])
"""


def test_a_solver_of_the_library(tmp_path: Path) -> None:
    text = program(SOLVED.format(adjoint=""), SOLVER)
    told = run(write(tmp_path, text))
    assert [kind for kind, _ in told.confirmed] == ["library-call"]
    (cut,) = lines_of(text, "# cut")
    assert told.confirmed[0][1] == cut


def test_a_solver_whose_adjoint_is_recorded_is_right(tmp_path: Path) -> None:
    body = SOLVED.format(adjoint="\n        tape.record_func(adjoint, [y, z])")
    told = run(write(tmp_path, program(body, SOLVER)))
    assert set(told.outcomes["x"]) == {"agrees"}
    assert told.confirmed == []


def test_an_array_without_gradient_behind_a_solver_whose_adjoint_is_recorded(tmp_path: Path) -> None:
    body = SOLVED.format(adjoint="\n        tape.record_func(adjoint, [y, z])").replace(
        "wp.launch(misfit, 2, [z, target], [loss])",
        "r = wp.zeros(2, dtype=float)  # lost\n        wp.launch(square, 2, [z, 0.5], [r])\n"
        "        wp.launch(misfit, 2, [r, target], [loss])",
    )
    text = program(body, SOLVER)
    told = run(write(tmp_path, text))
    assert [kind for kind, _ in told.confirmed] == ["no-gradient"]
    assert {line for _, line in told.confirmed} == lines_of(text, "# lost")


ON_THE_HOST = {
    "a kernel argument": """
    scale = float(x.numpy()[0])  # cut
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, scale], [y])
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "numpy in the middle": """
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        z = array(np.sin(y.numpy()))  # cut
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "an array made of an array": """
    with wp.Tape() as tape:
        y, z = wp.array(x, dtype=float, requires_grad=True), zeros(2)  # cut
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "a list": """
    values = x.list()  # cut
    y, z = array([2.0 * v for v in values]), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "filled in": """
    y, z = zeros(2), zeros(2)
    y.fill_(float(np.asarray(x)[1]))  # cut
    with wp.Tape() as tape:
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
    "a native sum that returns a number": """
    mean = wp.utils.array_sum(x) / 2.0  # cut
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, mean], [y])
        wp.launch(misfit, 2, [y, target], [loss])
""",
}


@pytest.mark.parametrize("body", ON_THE_HOST.values(), ids=ON_THE_HOST)
def test_what_goes_through_the_host(body: str, tmp_path: Path) -> None:
    text = program(body)
    told = run(write(tmp_path, text))
    assert "differs" in told.outcomes["x"]
    assert {kind for kind, _ in told.confirmed} == {"host-read"}
    assert {line for _, line in told.confirmed} == lines_of(text, "# cut")


def test_a_state_that_goes_from_window_to_window_is_told_from_a_round_trip(tmp_path: Path) -> None:
    """The place to comment is the backward call that ends too early."""
    body = """
rate, state = array([0.8]), np.array([0.5, 1.0])
for it in range(3):
    for window in range(3):
        a, b, loss = array(state), zeros(2), zeros(1)
        with wp.Tape() as tape:
            wp.launch(grow, 2, [a, rate], [b])
            wp.launch(misfit, 2, [b, 2.0], [loss])
        tape.backward(loss)  # window
        state = b.numpy().copy()
    rate.assign(rate.numpy() - 0.05 * rate.grad.numpy())
    rate.grad.zero_()
    state = np.array([0.5, 1.0])
"""
    told = run(write(tmp_path, body))
    causes = [cause for m in told.of("attribution") for cause in m["confirmed"]]
    assert [cause["kind_of_cause"] for cause in causes] == ["host-read"]
    assert {cause["passed"][0][1] for cause in causes} == lines_of(body, "# window")


DISABLED = {
    "by its decorator": """
@wp.kernel(enable_backward=False)  # cut
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]
""",
    "by its module's options": """
wp.set_module_options({"enable_backward": False}, module="cubes")  # cut


@wp.kernel(module="cubes")
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]
""",
    "by the configuration": """
wp.config.enable_backward = False  # cut


@wp.kernel(module="cubes")
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


wp.config.enable_backward = True
""",
}
CUBE = """
    y = zeros(2)
    with wp.Tape() as tape:
        wp.launch(cube, 2, [x], [y])
        wp.launch(misfit, 2, [y, target], [loss])
"""


@pytest.mark.parametrize("setup", DISABLED.values(), ids=DISABLED)
def test_a_kernel_without_backward_code(setup: str, tmp_path: Path) -> None:
    text = program(CUBE, setup)
    told = run(write(tmp_path, text))
    assert "differs" in told.outcomes["x"]
    assert {kind for kind, _ in told.confirmed} == {"backward-disabled"}
    assert {line for _, line in told.confirmed} == lines_of(text, "# cut")


def test_a_generic_kernel_without_backward_code(tmp_path: Path) -> None:
    setup = """
@wp.kernel(enable_backward=False)  # cut
def cube(x: wp.array(dtype=wp.Float), y: wp.array(dtype=wp.Float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]
"""
    text = program(CUBE, setup)
    told = run(write(tmp_path, text))
    assert {kind for kind, _ in told.confirmed} == {"backward-disabled"}


STRUCT = """
@wp.struct
class State:
    q: wp.array(dtype=float)


@wp.kernel
def advance(x: wp.array(dtype=float), state: State):
    i = wp.tid()
    state.q[i] = x[i] * x[i]


@wp.kernel
def measure(state: State, target: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    d = state.q[i] - target
    wp.atomic_add(loss, 0, d * d)
"""
WITHOUT_GRADIENT = {
    "a field of a struct": (
        """
    state = State()
    state.q = wp.zeros(2, dtype=float)  # cut
    with wp.Tape() as tape:
        wp.launch(advance, 2, [x, state])
        wp.launch(measure, 2, [state, target], [loss])
""",
        STRUCT,
    ),
    "the output of a map": (
        """
    y = wp.zeros(2, dtype=float)  # cut
    with wp.Tape() as tape:
        wp.map(twice, x, out=y)
        wp.launch(misfit, 2, [y, target], [loss])
""",
        """
@wp.func
def twice(v: float) -> float:
    return v * v
""",
    ),
    "a view taken before the flag was set": (
        """
    y, z = wp.zeros(4, dtype=float), zeros(2)
    part = y[:2]  # cut
    y.requires_grad = True
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(square, 2, [part, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
        "",
    ),
    "an array made from a pointer": (
        """
    y, z = zeros(2), zeros(2)
    same = wp.array(ptr=y.ptr, shape=2, dtype=float)  # cut
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(square, 2, [same, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
        "",
    ),
    "the destination of a copy": (
        """
    y, z = wp.zeros(2, dtype=float), zeros(2)  # cut
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
""",
        "",
    ),
}


@pytest.mark.parametrize(("body", "setup"), WITHOUT_GRADIENT.values(), ids=WITHOUT_GRADIENT)
def test_an_array_without_gradient(body: str, setup: str, tmp_path: Path) -> None:
    text = program(body, setup)
    told = run(write(tmp_path, text))
    assert "differs" in told.outcomes["x"]
    assert {kind for kind, _ in told.confirmed} == {"no-gradient"}
    assert {line for _, line in told.confirmed} == lines_of(text, "# cut")


def test_arrays_without_gradient_between_launches_before_the_tape(tmp_path: Path) -> None:
    """What was computed off the tape has no gradient either: both are needed, two launches deep."""
    body = """
    y = wp.zeros(2, dtype=float)  # cut
    z = wp.zeros(2, dtype=float)  # cut
    wp.launch(square, 2, [x, 0.5], [y])  # cut
    wp.launch(square, 2, [y, 0.5], [z])  # cut
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [z, target], [loss])
"""
    text = program(body)
    told = run(write(tmp_path, text))
    assert {kind for kind, _ in told.confirmed} == {"not-recorded", "no-gradient"}
    assert {line for _, line in told.confirmed} == lines_of(text, "# cut")


def test_two_cuts_one_behind_the_other(tmp_path: Path) -> None:
    """Neither alone brings anything back."""
    body = """
    y, z = zeros(2), wp.zeros(2, dtype=float)  # cut
    wp.launch(square, 2, [x, 0.5], [y])  # cut
    with wp.Tape() as tape:
        wp.launch(square, 2, [y, 0.5], [z])
        wp.launch(misfit, 2, [z, target], [loss])
"""
    text = program(body)
    told = run(write(tmp_path, text))
    assert {kind for kind, _ in told.confirmed} == {"not-recorded", "no-gradient"}
    assert {line for _, line in told.confirmed} == lines_of(text, "# cut")


RIGHT = {
    "constants prepared before the tape": """
    mass, y = zeros(2), zeros(2)
    wp.launch(square, 2, [array([1.0, 2.0]), 0.5], [mass])
    with wp.Tape() as tape:
        wp.launch(grow, 2, [x, mass], [y])
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "metrics and prints beside the tape": """
    y, metric = zeros(2), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, target], [loss])
    wp.launch(misfit, 2, [y, 1.0], [metric])
    print(y.numpy(), wp.utils.array_sum(y), float(metric.numpy()[0]))
""",
    "a dry run of the same launches before the tape": """
    y = zeros(2)
    wp.launch(square, 2, [x, 0.5], [y])
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, target], [loss])
""",
    "a kernel without backward code beside the path": """
    y, seen = zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(cube, 2, [y], [seen])
        wp.launch(misfit, 2, [y, target], [loss])
""",
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_a_right_program_is_measured_right(body: str, tmp_path: Path) -> None:
    told = run(write(tmp_path, program(body, DISABLED["by its decorator"])))
    assert set(told.outcomes["x"]) == {"agrees"}
    assert told.confirmed == []
