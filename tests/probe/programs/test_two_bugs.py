"""Two bugs in one program, of which one hides the other: both are found in one run, no innocent is."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

pytestmark = pytest.mark.probe

PROGRAMS = {
    "a seed that is used up behind an overwritten state": """
p = array([0.7, 0.9])
seed = wp.array([1.0, 0.5], dtype=float)
for it in range(3):
    x, y, z = zeros(2), zeros(2), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [p, 1.0], [x])
        wp.launch(square, 2, [x, 1.0], [y])
        wp.launch(product, 2, [y, p], [x])  # overwrite
        wp.launch(square, 2, [x, 1.0], [z])
    z.grad = seed
    tape.backward()  # consumed-seed
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    p.grad.zero_()
""",
    "a tape that is entered again around buffers that take turns": """
p, start = array([0.7]), wp.array([0.5, 0.6], dtype=float)
loss, a, b = zeros(1), zeros(2), zeros(2)
tape = wp.Tape()
for it in range(3):
    loss.zero_()
    a.assign(start)
    with tape:  # replayed-launches
        for k in range(2):
            wp.launch(grow, 2, [a, p], [b])  # overwrite
            wp.launch(grow, 2, [b, p], [a])  # overwrite
        wp.launch(misfit, 2, [a, 2.0], [loss])
    tape.backward(loss)
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    tape.zero()
""",
    "a launch off the tape and a write before backward": """
p = array([0.7, 0.9])
for it in range(2):
    loss, x, y, z = zeros(1), zeros(2), zeros(2), zeros(2)
    wp.launch(square, 2, [p, 1.0], [x])  # not-recorded
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 1.0], [y])
        wp.launch(square, 2, [y, 1.0], [z])
        wp.launch(misfit, 2, [z, 2.0], [loss])
    y.fill_(0.1)  # overwrite
    tape.backward(loss)
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    tape.zero()
""",
    "windows cut in the host, with an array without gradient in each": """
p = array([0.7, 0.9])
for it in range(2):
    state = np.array([0.5, 0.6])
    p.grad.zero_()
    for frame in range(3):
        loss, y = zeros(1), zeros(2)
        start = wp.array(state, dtype=float, requires_grad=True)
        f = wp.zeros(2, dtype=float)  # no-gradient
        with wp.Tape() as tape:
            wp.launch(square, 2, [p, 1.0], [f])
            wp.launch(product, 2, [start, f], [y])
            wp.launch(misfit, 2, [y, 2.0], [loss])
        tape.backward(loss)
        state = y.numpy().copy()  # host-read
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_are_found(name: str, tmp_path: Path) -> None:
    text = PROGRAMS[name]
    told = run(write(tmp_path, text))
    first = KERNELS.count("\n") + 1
    marked = [(n, line.partition("# ")[2]) for n, line in enumerate(text.splitlines(), first) if "# " in line]
    kinds = {kind for _, kind in marked}
    assert {kind for kind, _ in told.confirmed} == kinds
    for kind in kinds - {"replayed-launches"}:
        assert {n for k, n in told.confirmed if k == kind} == {n for n, k in marked if k == kind}
