"""What user code makes of a gradient between the backward pass and the step."""

from __future__ import annotations

import pytest

RIGHT = {
    "clipped": "x.grad.assign(np.clip(x.grad.numpy(), -0.1, 0.1))",
    "scaled": "x.grad.assign(2.0 * x.grad.numpy())",
    "clipped by its norm": "g = x.grad.numpy()\n    n = float(np.linalg.norm(g))\n    if n > 1.0:\n"
    "        x.grad.assign(g / n)",
    "scaled by a kernel": "wp.launch(shrink, 3, [x.grad])",
    "copied over": "other = wp.clone(x.grad)\n    wp.copy(x.grad, other)",
}

WRONG = {
    "zeroed": "x.grad.zero_()",
    "filled": "x.grad.fill_(0.0)",
    "reset with the tape": "tape.zero()",
}

PROGRAM = """
@wp.kernel
def shrink(g: wp.array(dtype=float)):
    i = wp.tid()
    g[i] = 0.5 * g[i]

x = grad()
for it in range(10):
    loss = grad(1)
    with wp.Tape() as tape:
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    {between}
    x.assign(x.numpy() - 0.1 * x.grad.numpy())
    tape.zero()
"""


@pytest.mark.parametrize("form", RIGHT)
def test_a_gradient_that_is_set_is_not_empty(form, findings):
    assert findings(PROGRAM.format(between=RIGHT[form])) == []


@pytest.mark.parametrize("form", WRONG)
def test_a_gradient_that_is_emptied_is_stale(form, findings):
    found = findings(PROGRAM.format(between=WRONG[form]))
    assert [f.rule for f in found] == ["WL502"]


def test_a_momentum_kept_in_the_gradient_is_no_early_read(findings):
    body = PROGRAM.replace("    tape.backward", "    wp.launch(shrink, 3, [x.grad])\n    tape.backward")
    assert findings(body.format(between="pass").replace("    tape.zero()\n", "")) == []


def test_a_read_in_a_helper_is_told_where_the_helper_is_called(findings):
    """The helper is right in itself: that it is called too early is decided by its caller."""
    (found,) = findings("""
    def clipped(parameters):
        return [p.grad.numpy().copy().clip(-1.0, 1.0) for p in parameters]

    x, y, loss = grad(), grad(), grad(1)
    for _ in range(4):
        loss.zero_()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(total, 3, [y], [loss])
        gradients = clipped([x])
        tape.backward(loss)
        x.assign(x.numpy() - 0.1 * gradients[0])
        tape.zero()
    """)
    assert found.rule == "WL502"
    read, backward = found.related
    assert (read.message, backward.message) == ("the gradient is read here", "the backward pass runs here")
    assert read.location.line < found.location.line == backward.location.line - 1


def test_a_parameter_replaced_by_its_update_makes_no_round_trip(findings):
    """Whichever gradient the update takes: that this one is stale is another matter."""
    found = findings("""
    x = grad()
    g = x.grad
    for _ in range(4):
        loss = grad(1)
        with wp.Tape() as tape:
            wp.launch(total, 3, [x], [loss])
        tape.backward(loss)
        x = wp.array(x.numpy() - 0.1 * g.numpy(), dtype=float, requires_grad=True)
        tape.zero()
    """)
    assert [f.rule for f in found] == ["WL502"]
