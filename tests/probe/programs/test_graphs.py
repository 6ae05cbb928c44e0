"""Captured graphs: every replay is seen as the operations that were captured."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

pytestmark = pytest.mark.probe

FIT = """
x = array([0.5, 1.0, 1.5])
loss = zeros(1)
tape = wp.Tape()
with wp.ScopedCapture() as capture:
    loss.zero_()
    with tape:
        y = zeros(3)
        wp.launch(square, 3, [x, 0.5], [y])
        wp.launch(misfit, 3, [y, 2.0], [loss])
    tape.backward(loss)
for it in range(4):
    wp.capture_launch(capture.graph)
    wp.launch(descend, 3, [x, x.grad, 0.05])
    {housekeeping}
"""

OVERWRITE = """
x, rate, loss = array([0.5, 1.0, 1.5]), array([0.3]), zeros(1)
a, b = zeros(3), zeros(3)
tape = wp.Tape()
with wp.ScopedCapture() as capture:
    loss.zero_()
    with tape:
        wp.launch(grow, 3, [x, rate], [a])
        for _ in range(4):
            wp.launch(grow, 3, [a, rate], [b])
            a, b = b, a
        wp.launch(misfit, 3, [a, 2.0], [loss])
    tape.backward(loss)
for it in range(3):
    wp.capture_launch(capture.graph)
    wp.launch(descend, 1, [rate, rate.grad, 0.01])
    tape.zero()
"""


def line_of(body: str, text: str) -> int:
    program = (KERNELS + body).splitlines()
    return next(n for n, line in enumerate(program, 1) if text in line)


def test_a_captured_training_step_is_right(tmp_path: Path) -> None:
    told = run(write(tmp_path, FIT.format(housekeeping="tape.zero()")))
    assert told.outcomes == {"x": ["agrees", "agrees"]}


def test_gradients_left_over_between_replays_show_in_the_second(tmp_path: Path) -> None:
    told = run(write(tmp_path, FIT.format(housekeeping="pass")))
    assert told.outcomes == {"x": ["agrees", "differs"]}


def test_an_overwrite_in_a_graph_is_found_where_it_was_captured(tmp_path: Path) -> None:
    told = run(write(tmp_path, OVERWRITE))
    assert told.confirmed == [("overwrite", line_of(OVERWRITE, "wp.launch(grow, 3, [a, rate], [b])"))]
