"""A backward pass without arguments begins with whatever was put into a gradient before it."""

from __future__ import annotations

import pytest

TRAINING = """
import mylib
import torch

@wp.kernel
def ones(g: wp.array(dtype=float)):
    g[wp.tid()] = 1.0

class State:
    pass

def seed_named(state, names, value):
    for name in names:
        getattr(state, name).grad.assign(value)

x, y = grad(), grad()
state = State()
state.y = y
names = open("names.txt").read().split()
for _ in range(3):
    tape = wp.Tape()
    with tape:
        wp.launch(square, 3, [x], [y])
    {seed}
    tape.backward()
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""

SEEDS = [
    "y.grad = wp.ones(3, dtype=float)",
    "y[:2].grad.fill_(1.0)",
    "tape.gradients[y].fill_(1.0)",
    "wp.to_torch(y.grad).fill_(1.0)",
    "y.grad.numpy()[:] = 1.0",
    "seed_named(state, names, np.ones(3))",
    "setattr(y, 'grad', wp.ones(3, dtype=float))",
    "wp.launch(ones, 3, [getattr(state, names[0]).grad])",
    "wp.copy(getattr(state, names[0]).grad, wp.ones(3, dtype=float))",
    "mylib.seed(y)",
    "mylib.seed(state)",
]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_may_be_set_in_many_ways(seed, findings):
    assert findings(TRAINING.format(seed=seed)) == []


@pytest.mark.parametrize("seed", ["pass", "x.grad.zero_()"])
def test_without_one_the_objective_is_dead(seed, findings):
    assert [f.rule for f in findings(TRAINING.format(seed=seed))] == ["WL208"]


def test_a_pass_over_arrays_without_a_gradient_is_no_objective(findings):
    assert (
        findings("""
    x, y = wp.ones(3, dtype=float), wp.zeros(3, dtype=float)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    tape.backward()
    """)
        == []
    )
