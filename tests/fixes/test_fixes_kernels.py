"""Fixes of kernels, as text."""

from __future__ import annotations

import pytest
from fixes_support import HEAD, all_fixed, changed

DAMP = (
    HEAD
    + """
@wp.kernel
def damp(v: wp.array[float], c: wp.array[float]):
    i = wp.tid()
    {body}


wp.launch(damp, dim=3, inputs=[v, c])
"""
)


@pytest.mark.parametrize(
    ("rule", "body", "fixed"),
    [
        ("WL301", "v[i] *= 1.0 - c[i]", "v[i] = v_in[i] * (1.0 - c[i])"),
        ("WL301", "v[i] /= c[i]", "v[i] = v_in[i] / c[i]"),
        ("WL301", "v[i] = v[i] * c[i]", "v[i] = v_in[i] * c[i]"),
        (
            "WL108",
            "v[i] = v[i] / wp.sqrt(1.0 + v[i] * v[i])",
            "v[i] = v_in[i] / wp.sqrt(1.0 + v_in[i] * v_in[i])",
        ),
    ],
)
def test_a_kernel_reads_the_old_values_from_a_copy(rule, body, fixed):
    text = DAMP.format(body=body)
    first, *_ = all_fixed(rule, text, body)
    assert changed(text, first) == [
        "def damp(v: wp.array[float], c: wp.array[float], v_in: wp.array[float]):",
        fixed,
        "wp.launch(damp, dim=3, inputs=[v, c, wp.clone(v)])",
    ]


def test_the_copy_stands_before_the_outputs():
    text = DAMP.format(body="v[i] *= c[i]").replace("inputs=[v, c]", "inputs=[v], outputs=[c]")
    first, *_ = all_fixed("WL301", text, "v[i] *= c[i]")
    assert "def damp(v: wp.array[float], v_in: wp.array[float], c:" in first
    assert "inputs=[v, wp.clone(v)], outputs=[c]" in first


def test_a_signature_that_grows_too_long_gets_a_line_for_each_parameter():
    text = DAMP.format(body="v[i] *= c[i]").replace(
        "v: wp.array[float]", "v: wp.array(dtype=wp.float32, ndim=1)"
    )
    first, *_ = all_fixed("WL301", text, "v[i] *= c[i]")
    assert (
        "def damp(\n    v: wp.array(dtype=wp.float32, ndim=1),\n    c: wp.array[float],\n    v_in:" in first
    )


def test_parameters_on_a_line_of_their_own_stay_in_their_parentheses():
    long = "wp.array(dtype=wp.float32, ndim=1)"
    text = DAMP.format(body="v[i] *= c[i]").replace(
        "def damp(v: wp.array[float], c: wp.array[float]):", f"def damp(\n    v: {long}, c: {long}\n):"
    )
    first, *_ = all_fixed("WL301", text, "v[i] *= c[i]")
    assert f"def damp(\n    v: {long},\n    c: {long},\n    v_in: {long},\n):\n" in first


def test_a_kernel_that_is_launched_out_of_sight_is_left_alone():
    text = DAMP.format(body="v[i] *= c[i]") + "\nsomething(damp)\n"
    assert all_fixed("WL301", text, "v[i] *= c[i]") == []


def component(body: str, result: str = "v") -> str:
    return f"{HEAD}\n\n@wp.func\ndef f(v: wp.vec3, a: float):\n    {body}\n    return {result}\n"


@pytest.mark.parametrize(
    ("body", "fixed"),
    [
        ("v[0] = v[0] + a", "v[0] += a"),
        ("v[0] = v[0] - a * a", "v[0] -= a * a"),
        ("v[0] = a + v[0]", "v[0] += a"),
        ("v[1] *= a", "v = wp.vec3(v[0], v[1] * (a), v[2])"),
        ("v[2] = a", "v = wp.vec3(v[0], v[1], a)"),
        ("v.y = a", "v = wp.vec3(v[0], a, v[2])"),
    ],
)
def test_a_component_is_added_to_or_the_vector_built_anew(body, fixed):
    text = component(body)
    assert changed(text, all_fixed("WL302", text, body)[0]) == [fixed]


def test_the_type_of_a_vector_is_read_off_where_it_comes_from():
    text = (
        f"{HEAD}\n\n@wp.kernel\ndef k(x: wp.array(dtype=wp.vec2), c: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n    f = c[0] * x[i]\n    f[1] = f[1] * c[1]\n    x[i] = f\n"
    )
    first, *others = all_fixed("WL302", text, "f[1] = f[1] * c[1]")
    assert changed(text, first) == ["f = wp.vec2(f[0], f[1] * c[1])"]
    assert changed(text, others[-1]) == ["wp.config.enable_vector_component_overwrites = True"]


LOOP = (
    HEAD
    + """
N = 5


@wp.func
def weight(x: wp.array(dtype=float), i: int, count: int) -> float:
    rho = float(0.1)
    for j in range(count):
        rho += x[i] * x[j]
    return 1.0 / rho


@wp.kernel
def weigh(x: wp.array(dtype=float), count: int, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = weight(x, i, count)


wp.launch(weigh, dim=N, inputs=[x, {count}, y])
"""
)


def test_a_bound_that_is_a_constant_at_every_launch_is_written_as_one():
    text = LOOP.format(count="N")
    first, *_ = all_fixed("WL303", text, "return 1.0 / rho", loop_that_computes_it="for j in range(count):")
    assert changed(text, first) == ["for j in range(N):"]


def test_a_function_is_split_behind_the_loop():
    text = LOOP.format(count="x.shape[0]")
    first, *_ = all_fixed("WL303", text, "return 1.0 / rho", loop_that_computes_it="for j in range(count):")
    assert changed(text, first) == [
        "def weight_rho(x: wp.array(dtype=float), i: int, count: int):",
        "return rho",
        "rho = weight_rho(x, i, count)",
    ]


def test_a_loop_in_a_kernel_becomes_a_function():
    text = (
        f"{HEAD}\n\n@wp.kernel\ndef k(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n    s = float(0.0)\n    for j in range(n):\n        s += x[j]\n    y[i] = s * s\n"
    )
    first, *_ = all_fixed("WL303", text, "y[i] = s * s", loop_that_computes_it="for j in range(n):")
    assert "def k_s(n: int, x: wp.array(dtype=float)):\n    s = float(0.0)\n    for j in range(n):\n" in first
    assert "    i = wp.tid()\n    s = k_s(n, x)\n    y[i] = s * s\n" in first


@pytest.mark.parametrize(
    ("rule", "body", "fixed"),
    [
        ("WL304", "y = wp.where(a > 0.0, wp.exp(a), 0.0)", "y = wp.exp(a) if a > 0.0 else 0.0"),
        ("WL304", "y = 2.0 * wp.where(a > 0.0, a, 0.0)", "y = 2.0 * (a if a > 0.0 else 0.0)"),
        ("WL305", "y = wp.sqrt(wp.dot(v, v))", "y = wp.length(v)"),
        ("WL305", "y = wp.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])", "y = wp.length(v)"),
        ("WL305", "y = wp.sqrt(a * a + 4.0)", "y = wp.sqrt(wp.max(a * a + 4.0, 1.0e-12))"),
        ("WL305", "y = wp.log(a)", "y = wp.log(wp.max(a, 1.0e-12))"),
        ("WL206", "y = v[0] if a > 0.0 else v[1]", "y = wp.where(a > 0.0, v[0], v[1])"),
        ("WL205", "y = 3.0 * wp.frac(a)", "y = 3.0 * (a - wp.floor(a))"),
        ("WL205", "y = wp.frac(2.0 * a)", "y = (2.0 * a) - wp.floor(2.0 * a)"),
    ],
)
def test_an_operation_is_written_so_that_its_derivative_is_finite(rule, body, fixed):
    text = component(body, "y")
    assert changed(text, all_fixed(rule, text, body)[0]) == [fixed]


ADJOINT = (
    HEAD
    + """
@wp.func
def f(x: float):
    return x * x


@wp.func_grad(f)
def adj_f(x: float, adj_ret: float):
    {body}
"""
)


@pytest.mark.parametrize(
    ("rule", "body", "fixed"),
    [
        ("WL401", "wp.adjoint[x] = 2.0 * x * adj_ret", "wp.adjoint[x] += 2.0 * x * adj_ret"),
        ("WL402", "wp.adjoint[x] += 2.0 * x", "wp.adjoint[x] += adj_ret * (2.0 * x)"),
    ],
)
def test_a_custom_adjoint_adds_the_chained_derivative(rule, body, fixed):
    text = ADJOINT.format(body=body)
    assert changed(text, all_fixed(rule, text, body)[0]) == [fixed]


def test_a_claimed_index_is_read_again_in_the_replay():
    text = (
        f"{HEAD}\n\n@wp.kernel\ndef emit(x: wp.array(dtype=float), count: wp.array(dtype=int), "
        "slots: wp.array(dtype=int), y: wp.array(dtype=float)):\n    n = wp.tid()\n"
        "    slot = wp.atomic_add(count, 0, 1)\n    slots[n] = slot\n    y[slot] = x[n]\n"
    )
    first, *_ = all_fixed("WL403", text, "slot = wp.atomic_add(count, 0, 1)")
    assert changed(text, first)[:2] == [
        "@wp.func",
        "def take_slot(count: wp.array(dtype=int), slots: wp.array(dtype=int), n: int):",
    ]
    assert "@wp.func_replay(take_slot)" in first
    assert "    slot = take_slot(count, slots, n)\n    y[slot] = x[n]\n" in first


def test_a_kernel_gets_the_array_instead_of_a_number_from_the_host():
    text = (
        f"{HEAD}\n\n@wp.kernel\ndef slide(x: wp.array(dtype=float), mu: float):\n    x[0] = mu * mu\n\n\n"
        "def run(theta, x):\n    mu = float(theta.numpy()[1])\n    wp.launch(slide, 1, [x, mu])\n"
    )
    first, *_ = all_fixed("WL204", text, "theta.numpy()", "`theta` as the argument `mu` of `slide`")
    assert changed(text, first) == [
        "def slide(x: wp.array(dtype=float), mu: wp.array(dtype=float)):",
        "x[0] = mu[1] * mu[1]",
        "wp.launch(slide, 1, [x, theta])",
    ]
    assert "mu = float" not in first
