"""Programs whose gradient is wrong: measured so, and traced to the line that makes it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

pytestmark = pytest.mark.probe

FIRST = KERNELS.count("\n") + 1
"""Line number of a body's first line."""


def line_of(body: str, text: str) -> int:
    return FIRST + body[: body.index(text)].count("\n")


PING_PONG = """
rate, a, b = array([0.8]), zeros(2), zeros(2)
start = wp.array([0.5, 1.0], dtype=float)
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.copy(a, start)
        for step in range(6):
            wp.launch(grow, 2, [a, rate], [b])
            a, b = b, a
        wp.launch(misfit, 2, [a, 2.0], [loss])
    tape.backward(loss)
    rate.assign(rate.numpy() - 0.05 * rate.grad.numpy())
    tape.zero()
"""


def test_buffers_that_take_turns(tmp_path: Path) -> None:
    told = run(write(tmp_path, PING_PONG))
    assert told.outcomes == {"rate": ["differs"] * 3}
    assert told.confirmed == [("overwrite", line_of(PING_PONG, "wp.launch(grow"))]


def test_an_array_without_gradient_on_the_path(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2, False)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["differs", "differs"]}
    assert [kind for kind, _ in told.confirmed] == ["no-gradient"]


def test_two_causes_where_one_masks_the_other_are_both_confirmed(tmp_path: Path) -> None:
    """Behind the array without gradient nothing arrives; with it mended, the swap still spoils it."""
    body = """
rate, a, b = array([0.8]), zeros(2), zeros(2)
start = wp.array([0.5, 1.0], dtype=float)
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        hidden = wp.zeros(1, dtype=float)
        wp.launch(square, 1, [rate, 1.0], [hidden])
        wp.copy(a, start)
        for step in range(6):
            wp.launch(grow, 2, [a, hidden], [b])
            a, b = b, a
        wp.launch(misfit, 2, [a, 2.0], [loss])
    tape.backward(loss)
    rate.assign(rate.numpy() - 0.05 * rate.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert told.confirmed == [
        ("no-gradient", line_of(body, "hidden = wp.zeros")),
        ("overwrite", line_of(body, "wp.launch(grow")),
    ]
    (attribution,) = told.of("attribution")
    for cause in attribution["confirmed"]:
        assert cause["leave_one_out"] > 0.01, "putting this one back brings the error back"
    assert attribution["after"] < 0.01


def test_one_cause_leaves_the_innocent_pattern_beside_it_alone(tmp_path: Path) -> None:
    """`y` is overwritten too, but only a linear kernel reads it."""
    body = """
x, y = array([0.5, 1.0]), zeros(2)
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        hidden = zeros(2, False)
        wp.launch(square, 2, [x, 0.5], [hidden])
        wp.launch(descend, 2, [y, hidden, -1.0])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
    y.zero_()
"""
    told = run(write(tmp_path, body))
    assert [kind for kind, _ in told.confirmed] == ["no-gradient"]


def test_gradients_that_are_never_zeroed_show_from_the_second_iteration(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["agrees", "differs"]}
    assert told.confirmed == [("kept-gradient", line_of(body, "tape.backward(loss)"))]


def test_a_scalar_parameter_that_is_never_zeroed(tmp_path: Path) -> None:
    body = """
x = array([0.5])
for it in range(5):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(1)
        wp.launch(square, 1, [x, 0.5], [y])
        wp.launch(misfit, 1, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
"""
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "differs", "differs"]}


def test_a_live_view_of_the_gradient_emptied_before_its_use(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    g = x.grad.numpy()
    tape.zero()
    x.assign(x.numpy() - 0.01 * g)
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["differs", "differs"]}
    assert all(e["stale_view"] for e in told.episodes)
    mended = write(tmp_path, body.replace("x.grad.numpy()\n", "x.grad.numpy().copy()\n"))
    assert run(mended).outcomes == {"x": ["agrees", "agrees"]}


def test_a_gradient_that_is_not_finite(tmp_path: Path) -> None:
    body = """
x = array([0.0, 1.0])
for it in range(2):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 1.0], [y])
        wp.launch(root, 2, [y], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert not told.episodes[0]["finite"]


def test_backward_called_twice_on_one_recording_doubles_the_gradient(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["differs", "differs"]}
    assert all(abs(c["ad"] / c["fd"] - 2.0) < 0.02 for e in told.episodes for c in e["checks"])


def test_a_parameter_changed_between_recording_and_backward(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    x.assign(x.numpy() + 0.5)
    tape.backward(loss)
    x.assign(x.numpy() - 0.5 - 0.01 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["differs", "differs"]}
    assert told.confirmed == [("overwrite", line_of(body, "x.assign(x.numpy() + 0.5)"))]
