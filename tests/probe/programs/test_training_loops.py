"""Training loops that go wrong around the tape: each cause traced to its line, each right twin cleared."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

from warplint.probe.progress import drawn_anew, too_long_a_step

pytestmark = pytest.mark.probe

FIRST = KERNELS.count("\n") + 1

STEP = """
def forward(x, loss):
    y = zeros(2)
    wp.launch(square, 2, [x, 0.5], [y])
    wp.launch(misfit, 2, [y, 2.0], [loss])

"""


def confirmed(told, body: str) -> list[tuple[str, str]]:
    """(kind of cause, the line it stands at) of what was confirmed."""
    lines = (KERNELS + body).splitlines()
    return [(kind, lines[line - 1].strip()) for kind, line in told.confirmed]


WRONG = {
    "an optimizer kernel, never zeroed": (
        """
x, y, loss = array([0.5, 1.0]), zeros(2), zeros(1)
for it in range(4):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    wp.launch(descend, 2, [x, x.grad, 0.01])
""",
        [("kept-gradient", "tape.backward(loss)")],
    ),
    "only the parameter is zeroed, the accumulated buffer is not": (
        """
x, total, loss = array([0.5, 1.0]), zeros(1), zeros(1)
for it in range(4):
    total.zero_(), loss.zero_()
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [x, 2.0], [total])
        wp.launch(square, 1, [total, 0.1], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    x.grad.zero_()
""",
        [("kept-gradient", "tape.backward(loss)")],
    ),
    "a copy takes the gradient of its source along": (
        """
x, start = array([0.5, 1.0]), array([0.1, 0.2])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        state = wp.clone(start)
        wp.launch(descend, 2, [state, x, -0.5])
        wp.launch(misfit, 2, [state, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    x.grad.zero_()
""",
        [("kept-gradient", "tape.backward(loss)")],
    ),
    "backward twice": (
        """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    if it >= 0:
        tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
        [("kept-gradient", "tape.backward(loss)")],
    ),
    "the first loss is still seeded when the second goes back": (
        """
x = array([0.5, 1.0])
for it in range(4):
    first, second = zeros(1), zeros(1)
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [x, 2.0], [first])
        wp.launch(misfit, 2, [x, 7.0], [second])
    tape.backward(first)
    tape.backward(loss=second)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
        [("kept-gradient", "tape.backward(loss=second)")],
    ),
    "one tape for all iterations, zeroed": (
        """
x, y, loss = array([0.5, 1.0]), zeros(2), zeros(1)
tape = wp.Tape()
for it in range(4):
    loss.zero_()
    with tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
        [("replayed-launches", "tape = wp.Tape()")],
    ),
    "one tape for all iterations, not even zeroed": (
        """
x, y, loss = array([0.5, 1.0]), zeros(2), zeros(1)
tape = wp.Tape()
for it in range(4):
    loss.zero_()
    with tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
""",
        [("kept-gradient", "tape.backward(loss)"), ("replayed-launches", "tape = wp.Tape()")],
    ),
    "read as a copy before backward": (
        """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        forward(x, loss)
    g = x.grad.numpy().copy()
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * g)
    tape.zero()
""",
        [("stale-gradient", "g = x.grad.numpy().copy()")],
    ),
    "read by the optimizer after the reset": (
        """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        forward(x, loss)
    tape.backward(loss)
    tape.zero()
    wp.launch(descend, 2, [x, x.grad, 0.01])
""",
        [("stale-gradient", "wp.launch(descend, 2, [x, x.grad, 0.01])")],
    ),
    "a retained gradient on an array written twice": (
        """
x = array([0.5, 1.0])
for it in range(3):
    loss, f = zeros(1), wp.zeros(2, dtype=float, requires_grad=True, retain_grad=True)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [f])
        wp.launch(square, 2, [x, 1.5], [f])
        wp.launch(misfit, 2, [f, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
        [
            (
                "retained-gradient",
                "loss, f = zeros(1), wp.zeros(2, dtype=float, requires_grad=True, retain_grad=True)",
            )
        ],
    ),
    "a path is cut, and what is left of it is never zeroed": (
        """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2, grad=False)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
        wp.launch(misfit, 2, [x, 1.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
""",
        [
            ("kept-gradient", "tape.backward(loss)"),
            ("no-gradient", "return wp.zeros(n, dtype=float, requires_grad=grad)"),
        ],
    ),
    "a seed that is made once and used up": (
        """
x, seed = array([0.5, 1.0]), wp.ones(2, dtype=float)
for it in range(4):
    y = zeros(2, False)
    z = zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [z])
        wp.launch(square, 2, [z, 0.5], [y])
    tape.backward(grads={y: seed})
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    x.grad.zero_()
""",
        [("consumed-seed", "tape.backward(grads={y: seed})")],
    ),
    "the outputs' gradient is filled once": (
        """
x, y = array([0.5, 1.0]), zeros(2)
y.grad.fill_(1.0)
for it in range(4):
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [y])
    tape.backward()
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    x.grad.zero_()
""",
        [("consumed-seed", "tape.backward()")],
    ),
    "nobody says what the loss is": (
        """
x = array([0.5, 1.0])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        forward(x, loss)
    tape.backward()
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
        [("dead-objective", "tape.backward()")],
    ),
    "a tape for every frame, the state goes on": (
        """
x = array([0.8])
for it in range(3):
    state = array([0.5, 1.0])
    for frame in range(4):
        loss, after = zeros(1), zeros(2)
        with wp.Tape() as tape:
            wp.launch(grow, 2, [state, x], [after])
            wp.launch(misfit, 2, [after, 2.0], [loss])
        tape.backward(loss)
        state = after
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    x.grad.zero_()
""",
        [("truncated-horizon", "tape.backward(loss)")],
    ),
    "only the last chunk goes back, and gradients are never zeroed": (
        """
x = array([0.8])
for it in range(3):
    state = array([0.5, 1.0])
    for chunk in range(3):
        loss = zeros(1)
        with wp.Tape() as tape:
            states = [state] + [zeros(2) for _ in range(3)]
            for k in range(3):
                wp.launch(grow, 2, [states[k], x], [states[k + 1]])
            wp.launch(misfit, 2, [states[3], 2.0], [loss])
        state = wp.clone(states[3])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
""",
        [("kept-gradient", "tape.backward(loss)"), ("truncated-horizon", "tape.backward(loss)")],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_cause_is_found(name: str, tmp_path: Path) -> None:
    body, expected = WRONG[name]
    told = run(write(tmp_path, STEP + body))
    assert "differs" in told.outcomes["x"]
    assert confirmed(told, STEP + body) == expected


RIGHT = {
    "gradients of micro batches add up on purpose": """
x = array([0.5, 1.0])
for it in range(4):
    for target in (1.0, 2.0, 3.0):
        loss = zeros(1)
        with wp.Tape() as tape:
            y = zeros(2)
            wp.launch(square, 2, [x, 0.5], [y])
            wp.launch(misfit, 2, [y, target], [loss])
        tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    x.grad.zero_()
""",
    "a copy of an array whose gradient is emptied": """
x, start = array([0.5, 1.0]), array([0.1, 0.2])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        state = wp.clone(start)
        wp.launch(descend, 2, [state, x, -0.5])
        wp.launch(misfit, 2, [state, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
    "a tape that is reset": """
x, y, loss = array([0.5, 1.0]), zeros(2), zeros(1)
tape = wp.Tape()
for it in range(4):
    loss.zero_()
    with tape:
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.reset()
""",
    "a tape entered twice for one pass": """
x, y, loss = array([0.5, 1.0]), zeros(2), zeros(1)
for it in range(4):
    loss.zero_()
    tape = wp.Tape()
    with tape:
        wp.launch(square, 2, [x, 0.5], [y])
    with tape:
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
    "a view of the gradient taken before backward and used after it": """
x = array([0.5, 1.0])
g = x.grad.numpy()
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        forward(x, loss)
    tape.backward(loss)
    wp.launch(descend, 2, [x, x.grad, 0.01])
    print(abs(g).max())
    tape.zero()
""",
    "tapes that hand their adjoints on": """
x, y, loss = array([0.5, 1.0]), zeros(2), zeros(1)
for it in range(4):
    loss.zero_()
    first, second = wp.Tape(), wp.Tape()
    with first:
        wp.launch(square, 2, [x, 0.5], [y])
    with second:
        wp.launch(misfit, 2, [y, 2.0], [loss])
    second.backward(loss)
    first.backward()
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    first.zero(), second.zero()
""",
    "a loss that adds up over tapes, each gone back over on its own": """
x, loss = array([0.5, 1.0]), zeros(1)
for it in range(4):
    loss.zero_()
    for target in (1.0, 2.0, 3.0):
        with wp.Tape() as tape:
            y = zeros(2)
            wp.launch(square, 2, [x, 0.5], [y])
            wp.launch(misfit, 2, [y, target], [loss])
        tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    x.grad.zero_()
""",
    "an update after every frame": """
x = array([0.8])
state = array([0.5, 1.0])
for it in range(6):
    loss, after = zeros(1), zeros(2)
    with wp.Tape() as tape:
        wp.launch(grow, 2, [state, x], [after])
        wp.launch(misfit, 2, [after, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
    state = after
""",
    "seeds of one, and the sum is what is printed as the loss": """
x = array([0.5, 1.0])
for it in range(4):
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    print(f"loss {y.numpy().sum():.5f}, largest {y.numpy().max():.5f}")
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
    "seeds of one on squared errors whose root mean square is the loss": """
x = array([0.5, 1.0])
for it in range(4):
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
    y.grad.fill_(1.0)
    tape.backward()
    loss = float(np.sqrt(y.numpy().mean()))
    print("loss", loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
    "a regularizer is part of the loss that is printed and of the update": """
x = array([0.5, 1.0])
for it in range(4):
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    weights = x.numpy().copy()
    print("loss", float(y.numpy().sum()) + 0.1 * float((weights**2).sum()))
    x.assign(weights - 0.01 * (x.grad.numpy() + 0.2 * weights))
    tape.zero()
""",
    "seeds taken by hand, with the factor of the mean left to the learning rate": """
x = array([0.5, 1.0])
for it in range(4):
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
    seed = wp.array(y.numpy() - 2.0, dtype=float)
    tape.backward(grads={y: seed})
    print("loss", float(((y.numpy() - 2.0) ** 2).mean()))
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
    "a retained gradient on an array written once": """
x = array([0.5, 1.0])
for it in range(3):
    loss, f = zeros(1), wp.zeros(2, dtype=float, requires_grad=True, retain_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5], [f])
        wp.launch(misfit, 2, [f, 2.0], [loss])
    tape.backward(loss)
    print("sensitivity", f.grad.numpy())
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_loop_is_cleared(name: str, tmp_path: Path) -> None:
    told = run(write(tmp_path, STEP + RIGHT[name]))
    assert set(told.outcomes["x"]) == {"agrees"}
    assert told.confirmed == []


COMPUTED = """
x = np.array([0.5, 1.0])
for it in range(3):
    loss, z = zeros(1), zeros(2)
    given = wp.array(x, dtype=float)
    y = wp.zeros(2, dtype=float, requires_grad=True{flag})
    with wp.Tape() as tape:
        wp.launch(square, 2, [given, 0.5], [y])
        wp.launch(square, 2, [y, 1.0], [z])
        wp.launch(misfit, 2, [z, 2.0], [loss])
    tape.backward(loss)
    x = x - 0.01 * x * y.grad.numpy()
"""


def test_the_gradient_of_a_computed_array_is_used_up(tmp_path: Path) -> None:
    body = COMPUTED.format(flag="")
    told = run(write(tmp_path, body))
    assert set(told.outcomes) == {"y"}
    assert confirmed(told, body) == [("consumed-adjoint", "y = wp.zeros(2, dtype=float, requires_grad=True)")]


def test_the_gradient_of_a_computed_array_that_is_kept_is_right(tmp_path: Path) -> None:
    told = run(write(tmp_path, COMPUTED.format(flag=", retain_grad=True")))
    assert set(told.outcomes["y"]) == {"agrees"}
    assert told.confirmed == []


def test_a_step_that_is_too_long_is_told_from_a_wrong_gradient(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(6):
    loss = zeros(1)
    with wp.Tape() as tape:
        forward(x, loss)
    tape.backward(loss)
    x.assign(x.numpy() - 3.0 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, STEP + body))
    assert set(told.outcomes["x"]) == {"agrees"}
    step = told.of("measured")[0]["step"]
    assert step["downhill"]
    assert step["same"]
    assert step["after"] > 100.0 * step["before"]
    assert "learning rate" in too_long_a_step(step)


@pytest.mark.parametrize("generator", ["np.random.default_rng()", "np.random.default_rng(5)", "np.random"])
def test_noise_that_is_drawn_in_every_iteration_leaves_the_gradient_right(generator, tmp_path: Path) -> None:
    body = f"""
x, rng = array([0.5, 1.0]), {generator}
for it in range(6):
    loss = zeros(1)
    with wp.Tape() as tape:
        y, noise = zeros(2), wp.array(rng.normal(size=2), dtype=float)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(descend, 2, [y, noise, 0.3])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, STEP + body))
    assert set(told.outcomes["x"]) == {"agrees"}
    assert "drawn anew" in drawn_anew(told.of("measured")[0]["step"])


def test_batches_that_differ_are_no_noise(tmp_path: Path) -> None:
    body = """
x = wp.array(np.random.default_rng(2).normal(size=2), dtype=float, requires_grad=True)
for it in range(6):
    loss, y = zeros(1), zeros(2)
    with wp.Tape() as tape:
        wp.launch(square, 2, [x, 0.5 + 0.1 * it], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.01 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, STEP + body))
    assert drawn_anew(told.of("measured")[0]["step"]) is None
