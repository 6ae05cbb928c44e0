"""How programs update their parameters: the probe finds them all without a word from the user."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import run, write

pytestmark = pytest.mark.probe

STEP = """
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(3)
        wp.launch(square, 3, [x, 0.5], [y])
        wp.launch(misfit, 3, [y, 2.0], [loss])
    tape.backward(loss)
"""

UPDATES = {
    "assigned from numpy": """
x = array([0.5, 1.0, 1.5])
for it in range(4):
    {step}
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
""",
    "updated by a kernel": """
x = array([0.5, 1.0, 1.5])
for it in range(4):
    {step}
    wp.launch(descend, 3, [x, x.grad, 0.05])
    tape.zero()
""",
    "updated by wp.optim, through flattened views": """
x = array([0.5, 1.0, 1.5])
optimizer = warp.optim.Adam([x.flatten()], lr=0.05)
for it in range(4):
    {step}
    optimizer.step([x.grad.flatten()])
    tape.zero()
""",
    "re-created from numpy in every iteration": """
values = np.array([0.5, 1.0, 1.5], dtype=np.float32)
for it in range(4):
    x = array(values)
    {step}
    values = values - 0.05 * x.grad.numpy()
""",
    "changed through a numpy view that no hook sees": """
x = array([0.5, 1.0, 1.5])
view = x.numpy()
for it in range(4):
    {step}
    view -= 0.05 * x.grad.numpy()
    tape.zero()
""",
}


@pytest.mark.parametrize("how", UPDATES)
def test_a_parameter_is_found_and_measured(how: str, tmp_path: Path) -> None:
    body = UPDATES[how].format(step=STEP.strip("\n").lstrip())
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_several_parameters_are_measured_each(tmp_path: Path) -> None:
    body = """
weights = [array([0.5, 1.0]), array([0.7, 1.1])]
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        for w in weights:
            y = zeros(2)
            wp.launch(square, 2, [w, 0.5], [y])
            wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    for w in weights:
        w.assign(w.numpy() - 0.05 * w.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert len({e["variable"] for e in told.episodes}) == 2
    assert {e["outcome"] for e in told.episodes} == {"agrees"}


def test_gradients_accumulated_over_several_tapes_belong_to_the_sum_of_their_losses(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
for it in range(3):
    x.grad.zero_()
    for batch in range(3):
        loss = zeros(1)
        with wp.Tape() as tape:
            y = zeros(2)
            wp.launch(square, 2, [x, 0.5], [y])
            wp.launch(misfit, 2, [y, float(batch)], [loss])
        tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["agrees", "agrees"]}
    assert {e["backward_calls"] for e in told.episodes} == {3}


def test_so_do_those_of_slices_of_a_parameter(tmp_path: Path) -> None:
    """A slice is given its part of the gradient: that resets nothing."""
    program = write(
        tmp_path,
        """
x = array([0.5, 1.0, 1.5, 2.0])
for it in range(3):
    for target in (1.0, 3.0):
        loss, y = zeros(1), zeros(4)
        with wp.Tape() as tape:
            for half in (slice(0, 2), slice(2, 4)):
                wp.launch(square, 2, [x[half], 0.5], [y[half]])
            wp.launch(misfit, 4, [y, target], [loss])
        tape.backward(loss)
    x.assign(x.numpy() - 0.02 * x.grad.numpy())
    x.grad.zero_()
""",
    )
    told = run(program)
    assert set(told.outcomes["x"]) == {"agrees"}
    assert {e["backward_calls"] for e in told.episodes if e["parameter"] == "x"} == {2}


def test_a_gradient_carried_on_by_hand_is_no_second_objective(tmp_path: Path) -> None:
    """Checkpointing: the adjoint of a segment's start seeds the backward of the segment before."""
    body = """
x = array([0.5, 1.0])
for it in range(3):
    middle, loss = zeros(2), zeros(1)
    wp.launch(square, 2, [x, 0.5], [middle])
    with wp.Tape() as second:
        y = zeros(2)
        wp.launch(square, 2, [middle, 0.7], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    second.backward(loss)
    carried = wp.clone(middle.grad)
    middle.grad.zero_()
    with wp.Tape() as first:
        wp.launch(square, 2, [x, 0.5], [middle])
    first.backward(grads={middle: carried})
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    x.grad.zero_()
"""
    assert run(write(tmp_path, body)).outcomes["x"] == ["agrees", "agrees"]


def test_sums_that_warp_makes_itself_are_watched(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0])
norm = zeros(1)
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    tape.backward(loss)
    wp.utils.array_inner(x.grad, x.grad, out=norm)
    wp.launch(descend, 2, [x, x.grad, 0.05])
    print(wp.utils.array_sum(x), norm.numpy())
    tape.zero()
"""
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_explicit_adjoint_launches_need_no_tape(tmp_path: Path) -> None:
    body = """
x, y, loss = zeros(2, False), zeros(2, False), zeros(1, False)
x.assign([0.5, 1.0])
adj_x, adj_y, adj_loss = zeros(2, False), zeros(2, False), zeros(1, False)
for it in range(4):
    loss.zero_()
    wp.launch(square, 2, [x, 0.5], [y])
    wp.launch(misfit, 2, [y, 2.0], [loss])
    adj_loss.fill_(1.0)
    adj_x.zero_()
    adj_y.zero_()
    wp.launch(misfit, 2, [y, 2.0], [loss], adj_inputs=[adj_y, 0.0], adj_outputs=[adj_loss], adjoint=True)
    wp.launch(square, 2, [x, 0.5], [y], adj_inputs=[adj_x, 0.0], adj_outputs=[adj_y], adjoint=True)
    x.assign(x.numpy() - 0.05 * adj_x.numpy())
"""
    assert set(run(write(tmp_path, body)).outcomes["x"]) == {"agrees"}


def test_players_that_take_turns_have_an_objective_each(tmp_path: Path) -> None:
    """What the other's backward call leaves in a gradient, zeroed unread, is nobody's objective."""
    body = """
alice, bob = array([0.5, 1.0]), array([0.7, 1.1])
for it in range(4):
    for me, aim in ((alice, 2.0), (bob, -1.0)):
        loss = zeros(1)
        with wp.Tape() as tape:
            for p in (alice, bob):
                y = zeros(2)
                wp.launch(square, 2, [p, 0.5], [y])
                wp.launch(misfit, 2, [y, aim], [loss])
        tape.backward(loss)
        me.assign(me.numpy() - 0.02 * me.grad.numpy())
        tape.zero()
"""
    assert {e["outcome"] for e in run(write(tmp_path, body)).episodes} == {"agrees"}


def test_a_step_of_another_parameter_alone_is_no_term(tmp_path: Path) -> None:
    """An adversary learns from samples made off its tape; the maker's objective is the next call."""
    body = """
maker = array([0.5, 1.0])
critic = array([0.7, 1.1])
for it in range(4):
    made, loss = zeros(2), zeros(1)
    wp.launch(square, 2, [maker, 0.5], [made])
    with wp.Tape() as tape:
        score = zeros(2)
        wp.launch(product, 2, [made, critic], [score])
        wp.launch(misfit, 2, [score, 2.0], [loss])
    tape.backward(loss)
    critic.assign(critic.numpy() - 0.05 * critic.grad.numpy())
    tape.zero()
    loss = zeros(1)
    with wp.Tape() as tape:
        made, score = zeros(2), zeros(2)
        wp.launch(square, 2, [maker, 0.5], [made])
        wp.launch(product, 2, [made, critic], [score])
        wp.launch(misfit, 2, [score, -1.0], [loss])
    tape.backward(loss)
    maker.assign(maker.numpy() - 0.05 * maker.grad.numpy())
    tape.zero()
"""
    assert run(write(tmp_path, body)).outcomes == {n: ["agrees", "agrees"] for n in ("maker", "critic")}


def test_nor_where_the_own_path_is_cut(tmp_path: Path) -> None:
    """The maker's samples are made off its own tape, too: that, and nothing of the adversary's."""
    body = """
maker = array([0.5, 1.0])
critic = array([0.7, 1.1])
for it in range(4):
    made, loss = zeros(2), zeros(1)
    wp.launch(square, 2, [maker, 0.5], [made])
    with wp.Tape() as tape:
        score = zeros(2)
        wp.launch(product, 2, [made, critic], [score])
        wp.launch(misfit, 2, [score, 2.0], [loss])
    tape.backward(loss)
    critic.assign(critic.numpy() - 0.05 * critic.grad.numpy())
    tape.zero()
    loss = zeros(1)
    made, score = zeros(2), zeros(2)
    wp.launch(square, 2, [maker, 0.5], [made])
    with wp.Tape() as tape:
        wp.launch(product, 2, [made, critic], [score])
        wp.launch(misfit, 2, [score, -1.0], [loss])
    tape.backward(loss)
    maker.assign(maker.numpy() - 0.05 * maker.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert set(told.outcomes["maker"]) == {"differs"}
    assert {kind for kind, _ in told.confirmed} == {"not-recorded"}


def test_two_losses_of_which_one_lost_its_way_are_one_objective(tmp_path: Path) -> None:
    """Both parameters are updated from the sum: what the first call should have left is missing."""
    body = """
one = array([0.5, 1.0])
two = array([0.7, 1.1])
for it in range(4):
    made, loss = zeros(2), zeros(1)
    wp.launch(square, 2, [one, 0.5], [made])
    with wp.Tape() as tape:
        score = zeros(2)
        wp.launch(product, 2, [made, two], [score])
        wp.launch(misfit, 2, [score, 2.0], [loss])
    tape.backward(loss)
    print(two.grad.numpy())
    extra = zeros(1)
    with wp.Tape() as more:
        score = zeros(2)
        wp.launch(product, 2, [one, two], [score])
        wp.launch(misfit, 2, [score, -1.0], [extra])
    more.backward(extra)
    for p in (one, two):
        p.assign(p.numpy() - 0.05 * p.grad.numpy())
        p.grad.zero_()
"""
    assert set(run(write(tmp_path, body)).outcomes["one"]) == {"differs"}


def test_what_is_done_to_a_gradient_after_it_was_read_belongs_to_the_optimizer(tmp_path: Path) -> None:
    body = """
x = array([0.5, 1.0, 1.5])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(3)
        wp.launch(square, 3, [x, 0.5], [y])
        wp.launch(misfit, 3, [y, 2.0], [loss])
    tape.backward(loss)
    x.grad.assign(x.grad.numpy() / np.linalg.norm(x.grad.numpy()))
    wp.launch(descend, 3, [x, x.grad, 0.05])
    tape.zero()
"""
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_a_target_copied_through_the_host_is_told_apart_from_a_lost_path(tmp_path: Path) -> None:
    """The gradient agrees once the copy is held constant: the rows say which copy that is."""
    body = """
x = array([0.5, 1.0])
for it in range(3):
    ahead = zeros(2)
    wp.launch(square, 2, [x, 0.9], [ahead])
    target = wp.array(ahead.numpy(), dtype=float)
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(descend, 2, [y, target, 1.0])
        wp.launch(misfit, 2, [y, 0.3], [loss])
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""
    told = run(write(tmp_path, body))
    assert told.outcomes == {"x": ["differs", "differs"]}
    assert {name for e in told.episodes for _, _, name in e["constant"]} == {"target"}
    assert {c["outcome"] for e in told.episodes for c in e["held"]} == {"agrees"}


def test_one_seed_filled_in_every_iteration_is_a_seed_every_time(tmp_path: Path) -> None:
    body = """
x, loss = array([0.5, 1.0]), zeros(1)
for it in range(4):
    loss.zero_()
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    loss.grad.fill_(1.0)
    tape.backward()
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    x.grad.zero_()
    y.grad.zero_()
"""
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_a_loss_reset_before_its_backward_call_is_still_the_loss(tmp_path: Path) -> None:
    body = """
x, loss = array([0.5, 1.0]), zeros(1)
for it in range(4):
    with wp.Tape() as tape:
        y = zeros(2)
        wp.launch(square, 2, [x, 0.5], [y])
        wp.launch(misfit, 2, [y, 2.0], [loss])
    loss.zero_()
    tape.backward(loss)
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


KEPT = """
x = array([0.5, 1.0, 1.5])
for it in range(4):
    loss = zeros(1)
    with wp.Tape() as tape:
        y = zeros(3)
        wp.launch(square, 3, [x, 0.5], [y])
        wp.launch(misfit, 3, [y, 2.0], [loss])
    {before}
    tape.backward(loss)
    {after}
    wp.launch(descend, 3, [x, x.grad, 0.05])
"""


def test_a_momentum_kept_in_the_gradient_is_given_not_left_over(tmp_path: Path) -> None:
    body = KEPT.format(before="x.grad.assign(0.8 * x.grad.numpy())", after="pass")
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "agrees"]}


def test_a_clipped_gradient_that_nobody_zeroes_is_left_over(tmp_path: Path) -> None:
    body = KEPT.format(before="pass", after="x.grad.assign(np.clip(x.grad.numpy(), -9.0, 0.5))")
    assert run(write(tmp_path, body)).outcomes == {"x": ["agrees", "differs"]}
