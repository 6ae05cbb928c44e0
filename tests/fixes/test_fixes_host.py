"""Fixes of host code, as text: the first candidate, or the one that is looked for."""

from __future__ import annotations

import pytest
from fixes_support import HEAD, all_fixed, changed

PING_PONG = (
    HEAD
    + """
@wp.kernel
def step(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


with wp.Tape() as tape:
    for t in range(9):
        wp.launch(step, dim=3, inputs=[{reads}], outputs=[{writes}])
        {swap}
tape.backward(loss)
"""
)


def ping_pong(reads: str, writes: str, swap: str) -> str:
    return PING_PONG.format(reads=reads, writes=writes, swap=swap)


def test_a_swap_takes_a_fresh_array():
    text = ping_pong("a", "b", "a, b = b, a")
    first, *_ = all_fixed("WL103", text, "a, b = b, a", "`a`", overwritten_here="wp.launch(step")
    assert changed(text, first) == ["a, b = b, wp.zeros_like(a)"]


def test_an_index_by_turns_takes_a_fresh_array_before_the_launch():
    text = ping_pong("q[t % 2]", "q[(t + 1) % 2]", "pass")
    first, *_ = all_fixed("WL103", text, "wp.launch(step", "`q[0]`")
    assert changed(text, first) == ["q[(t + 1) % 2] = wp.zeros_like(q[(t + 1) % 2])"]


def test_states_with_fields_take_fresh_fields():
    text = ping_pong("s0.q", "s1.q", "s0, s1 = s1, s0")
    fixed = all_fixed("WL103", text, "s0, s1 = s1, s0", "`s0.q`", overwritten_here="wp.launch(step")
    assert ["s1.q = wp.zeros_like(s1.q)"] in [changed(text, after) for after in fixed]


def test_a_buffer_handed_to_a_function_is_replaced_where_it_is_handed_in():
    text = ping_pong("u", "f", "pass").replace(
        "with wp.Tape() as tape:\n    for t in range(9):\n        wp.launch",
        "def advance(u, f):\n        wp.launch",
    )
    text = text.replace("        pass\n", "\nfor t in range(9):\n    advance(states[t], scratch)\n")
    first, *_ = all_fixed("WL101", text, "wp.launch(step", "`scratch`")
    assert changed(text, first) == ["scratch = wp.zeros_like(scratch)"]
    assert first.index("scratch = ") < first.index("    advance(")


def test_other_functions_of_the_same_name_are_left_alone():
    text = ping_pong("u", "f", "pass").replace(
        "with wp.Tape() as tape:\n    for t in range(9):\n        wp.launch",
        "def advance(u, f):\n        wp.launch",
    )
    text = text.replace(
        "        pass\n", "\nfor t in range(9):\n    advance(x[t], f)\n    optimizer.advance(p, q)\n"
    )
    first, *_ = all_fixed("WL101", text, "wp.launch(step", "`f`")
    assert changed(text, first) == ["f = wp.zeros_like(f)"]


def test_who_needs_the_value_may_read_a_copy():
    text = ping_pong("a", "b", "wp.copy(a, b)")
    fixed = all_fixed("WL102", text, "wp.copy(a, b)", "`a`", read_here="wp.launch(step")
    assert changed(text, fixed[0]) == ["a = wp.clone(b)"]
    assert changed(text, fixed[-1]) == ["wp.launch(step, dim=3, inputs=[wp.clone(a)], outputs=[b])"]


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("self.f.zero_()", "self.f = wp.zeros_like(self.f)"),
        ("f.fill_(2.0)", "f = wp.full_like(f, 2.0)"),
        ("f[k].zero_()", "f[k] = wp.zeros_like(f[k])"),
    ],
)
def test_a_reset_becomes_a_new_array(line, fixed):
    text = f"{HEAD}\nfor k in range(3):\n    {line}  # start from nothing\n    wp.launch(step, 3, [f])\n"
    first, *_ = all_fixed("WL105", text, line)
    assert changed(text, first) == [f"{fixed}  # start from nothing"]


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("new, new_v = q, v", "new, new_v = wp.zeros_like(q), wp.zeros_like(v)"),
        ("new = self.state", "new = wp.zeros_like(self.state)"),
        ("states = [wp.zeros(3)] * (n + 1)", "states = [wp.zeros(3) for _ in range(n + 1)]"),
        ("states = 4 * [wp.zeros(3)]", "states = [wp.zeros(3) for _ in range(4)]"),
    ],
)
def test_an_alias_becomes_an_array_of_its_own(line, fixed):
    text = f"{HEAD}\n{line}\n"
    assert changed(text, all_fixed("WL104", text, line)[0]) == [fixed]


@pytest.mark.parametrize(
    ("call", "fixed"),
    [
        ("wp.zeros(3, dtype=float)", "wp.zeros(3, dtype=float, requires_grad=True)"),
        ("wp.clone(x, requires_grad=False)", "wp.clone(x, requires_grad=True)"),
        ("wp.array(3 * (1 + 2))", "wp.array(3 * (1 + 2), requires_grad=True)"),
        ("wp.array((1 + 2))", "wp.array((1 + 2), requires_grad=True)"),
        ("wp.zeros(3,)", "wp.zeros(3, requires_grad=True,)"),
        (
            "wp.zeros(\n    3,  # three\n    dtype=float,\n)",
            "wp.zeros(\n    3,  # three\n    dtype=float,\n    requires_grad=True,\n)",
        ),
    ],
)
def test_an_allocation_gets_a_gradient(call, fixed):
    text = f"{HEAD}\ny = {call}\n"
    assert all_fixed("WL201", text, call)[0] == f"{HEAD}\ny = {fixed}\n"


def test_a_helper_is_told_to_track_where_it_was_not():
    text = f"{HEAD}\ndef make(n, track=False):\n    return wp.zeros(n, requires_grad=track)\n\nf = make(3)\n"
    fixed = all_fixed("WL201", text, "wp.zeros(n, requires_grad=track)")
    assert ["f = make(3, track=True)"] in [changed(text, after) for after in fixed]


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        (
            'wp.set_module_options({"enable_backward": False})',
            'wp.set_module_options({"enable_backward": True})',
        ),
        ("wp.config.enable_backward = False", "wp.config.enable_backward = True"),
        ("@wp.kernel(enable_backward=not DEBUG)\ndef k(): ...", "@wp.kernel(enable_backward=True)"),
    ],
)
def test_backward_code_is_turned_on(line, fixed):
    text = f"{HEAD}\n{line}\n"
    assert changed(text, all_fixed("WL202", text, line)[0]) == [fixed]


def test_a_retained_gradient_is_not_retained():
    text = f"{HEAD}\nf = wp.zeros(3, requires_grad=True, retain_grad=True)\n"
    call = "wp.zeros(3, requires_grad=True, retain_grad=True)"
    assert changed(text, all_fixed("WL504", text, call)[0]) == ["f = wp.zeros(3, requires_grad=True)"]


def test_a_retained_gradient_that_is_looked_at_stays():
    text = f"{HEAD}\nf = wp.zeros(3, requires_grad=True, retain_grad=True)\nprint(f.grad.numpy())\n"
    assert all_fixed("WL504", text, "wp.zeros(3, requires_grad=True, retain_grad=True)") == []


TRAINING = (
    HEAD
    + """
for it in range(5):
    {before_tape}
    with wp.Tape() as tape:
        wp.launch(loss_of, 3, [x], [loss])
        {on_tape}
    {before_backward}
    tape.backward(loss)
    g = x.grad.numpy()
    {after}
"""
)
LINES = dict.fromkeys(("before_tape", "on_tape", "before_backward", "after"), "print(it)")


def training(**lines: str) -> str:
    return TRAINING.format(**{**LINES, **lines})


@pytest.mark.parametrize(
    ("rule", "where"), [("WL106", "before_backward"), ("WL107", "on_tape")], ids=["WL106", "WL107"]
)
def test_what_overwrites_waits_for_the_backward_pass(rule, where):
    text = training(**{where: "wp.launch(rescale, 3, [x])"})
    first, *_ = all_fixed(rule, text, "wp.launch(rescale", backward_pass_runs_here="tape.backward(loss)")
    assert "    tape.backward(loss)\n    wp.launch(rescale, 3, [x])\n    g =" in first
    assert first.count("rescale") == 1


def test_a_launch_goes_onto_the_tape():
    text = training(before_tape="wp.launch(prepare, 3, [x])")
    first, *_ = all_fixed("WL203", text, "wp.launch(prepare, 3, [x])")
    assert "as tape:\n        wp.launch(prepare, 3, [x])\n        wp.launch(loss_of" in first
    assert first.count("prepare") == 1


def test_gradients_are_emptied_when_they_have_been_used():
    text = training(after="print(it)")
    first, *_ = all_fixed("WL501", text, "tape.backward(loss)")
    assert "    g = x.grad.numpy()\n    tape.zero()\n    print(it)\n" in first


def test_the_array_of_a_manual_adjoint_launch_is_emptied():
    launch = "wp.launch(k, 3, [a], [b], adj_inputs=[self.adj_a], adj_outputs=[s], adjoint=True)"
    text = f"{HEAD}\nfor it in range(3):\n    {launch}\n"
    first, *_ = all_fixed("WL501", text, "self.adj_a")
    assert changed(text, first) == ["self.adj_a.zero_()"]


def test_a_tape_is_reset_instead_of_zeroed():
    text = f"{HEAD}\ntape = wp.Tape()\nfor it in range(3):\n    with tape:\n        f()\n    tape.zero()\n"
    fixed = [
        changed(text, after) for after in all_fixed("WL506", text, "wp.Tape()", entered_again="with tape:")
    ]
    assert fixed[:2] == [["tape.reset()"], ["tape = wp.Tape()"]] or fixed[0] == ["tape.reset()"]


def test_a_backward_pass_goes_behind_the_recording():
    loop = f"{HEAD}\nfor it in range(3):\n    with wp.Tape() as tape:\n        f()\n"
    text = f"{loop}        tape.backward(loss)\n"
    fixed = all_fixed("WL506", text, "tape.backward(loss)")
    assert f"{loop}    tape.backward(loss)\n" in fixed


def test_a_launch_that_is_recorded_twice_is_left_out_once():
    text = f"{HEAD}\nwp.launch(k, 3, [x], [y])\nprint()\nwp.launch(k, 3, [x], [y])  # again\n"
    again = "wp.launch(k, 3, [x], [y])  # again"
    assert all_fixed("WL505", text, again)[0] == text.removesuffix(f"{again}\n")


def test_a_view_of_the_gradient_is_copied():
    text = training(after="tape.zero()")
    first, *_ = all_fixed("WL502", text, "x.grad.numpy()", tape_zero="tape.zero()")
    assert changed(text, first) == ["g = x.grad.numpy().copy()"]


def test_the_gradient_is_read_when_it_is_there():
    text = training(before_backward="g0 = x.grad.numpy().copy()")
    fixed = all_fixed("WL502", text, "x.grad.numpy()")
    assert any("tape.backward(loss)\n    g0 = x.grad.numpy().copy()\n" in after for after in fixed)


def test_a_pass_without_loss_begins_at_the_loss():
    text = training().replace("tape.backward(loss)", "tape.backward()")
    assert changed(text, all_fixed("WL208", text, "tape.backward()")[0]) == ["tape.backward(loss)"]


def test_what_a_function_says_of_itself_is_no_formula():
    text = (
        f"{HEAD}\ntape.backward(grads={{r: wp.ones_like(r)}})\n\ndef cost():\n"
        '    """The mean of the square gaps ** 2."""\n    return np.average(r.numpy())\n'
    )
    first, *_ = all_fixed("WL507", text, "tape.backward", "`r`", is_reported_here="return np")
    assert "wp.full_like(r, 1.0 / r.size, requires_grad=False)" in first


@pytest.mark.parametrize(
    ("reported", "seed"),
    [
        ("0.5 * float((r.numpy() ** 2).sum())", "wp.clone(r, requires_grad=False)"),
        ("float((r.numpy() ** 2).sum())", "wp.array(2.0 * r.numpy(), dtype=r.dtype)"),
        ("r.numpy().mean()", "wp.full_like(r, 1.0 / r.size, requires_grad=False)"),
    ],
)
def test_seeds_are_the_derivative_of_what_is_reported(reported, seed):
    text = f"{HEAD}\ntape.backward(grads={{r: wp.ones_like(r)}})\ncost = {reported}\n"
    first, *_ = all_fixed("WL507", text, "tape.backward", "`r`", is_reported_here="cost =")
    assert changed(text, first) == [f"tape.backward(grads={{r: {seed}}})"]
