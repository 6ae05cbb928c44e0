"""A program whose states do not fit the memory that a measurement has."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import run, write

pytestmark = pytest.mark.probe

STATES = """
STEPS = 120
CELLS = 400_000
rate = array([0.1])
for it in range(2):
    x = [wp.full(CELLS, 0.5, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
    loss = zeros(1)
    with wp.Tape() as tape:
        for t in range(STEPS):
            wp.launch(grow, CELLS, [x[t], rate], [x[t + 1]])
        wp.launch(misfit, 4, [x[STEPS], 2.0], [loss])
    tape.backward(loss)
    rate.assign(rate.numpy() - 1e-3 * rate.grad.numpy())
    tape.zero()
"""


def test_fewer_steps_are_taken_and_the_numbers_told(tmp_path: Path) -> None:
    told = run(write(tmp_path, STATES), investigate=True, memory=800 << 20)
    (memory,) = told.of("memory")
    assert memory["bytes"] == pytest.approx(3.2e6, rel=0.01)  # the values and the adjoints of a state
    assert memory["all"] == 120
    assert memory["steps"] < 120
    assert told.outcomes["rate"][0] == "agrees"
    (number,) = told.of("measured")[0]["shortened"]
    assert (number["name"], number["value"]) == ("STEPS", 120)
    assert number["shorter"] == 20  # a fifth of what a measurement may take
