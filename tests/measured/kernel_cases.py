"""Small kernels whose gradients were measured, each as a plain program that fits its input.

``wrong`` is the rule that says why the gradient is wrong on Warp 1.19; None stands for a right one.
``hint`` is a rule that points at the code without running it, although this data leaves the gradient right.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

HEAD = """
import numpy as np
import warp as wp

F = wp.array(dtype=float)


@wp.kernel
def scale(x: F, s: float, y: F):
    i = wp.tid()
    y[i] = s * x[i]


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def total(x: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * float(i + 1))


@wp.kernel
def squares(x: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


def zeros(n, dtype=float):
    return wp.zeros(n, dtype=dtype, requires_grad=True)


"""
BODY = """

x = wp.array({x}, dtype=float, requires_grad=True)
for iteration in range(3):
    loss = zeros(1)
    {fresh}
    tape = wp.Tape()
    with tape:
        {recorded}
    tape.backward(loss)
    x.assign(x.numpy() - 1.0e-4 * x.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
"""


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    wrong: str | None
    hint: str | None = None


def case(name, kernels, recorded, *, wrong=None, hint=None, x="[0.7, 1.1, 1.6]", fresh="pass") -> Case:
    lines = recorded.replace("; ", "\n").strip().replace("\n", "\n        ")
    body = BODY.format(x=x, fresh=fresh.replace("; ", "\n    "), recorded=lines)
    return Case(name, HEAD + textwrap.dedent(kernels).strip() + "\n" + body, wrong, hint)


def kernel(head: str, body: str, above: str = "") -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"{above}@wp.kernel\ndef k({head}):\n    i = wp.tid()\n{lines}\n"


# -- in place ---------------------------------------------------------------------------

CHAIN = "wp.launch(scale, 3, [x, 2.0, a]); wp.launch(square, 3, [x, b]); wp.launch(k, 3, [a, b]); "
CHAIN += "wp.launch(total, 3, [a, loss])"


def in_place(name: str, statement: str, wrong: str | None) -> Case:
    return case(name, kernel("a: F, b: F", statement), CHAIN, wrong=wrong, fresh="a, b = zeros(3), zeros(3)")


def one_side(name: str, statement: str, which: str, wrong: str | None) -> Case:
    other = "b" if which == "a" else "a"
    recorded = f"wp.launch(scale, 3, [x, 2.0, {which}]); wp.launch(k, 3, [a, b]); "
    fresh = f"{which} = zeros(3); {other} = wp.full(3, 1.7, dtype=float, requires_grad=True)"
    recorded += "wp.launch(total, 3, [a, loss])"
    return case(name, kernel("a: F, b: F", statement), recorded, wrong=wrong, fresh=fresh)


IN_PLACE = [
    in_place("10_imul", "a[i] *= b[i]", "WL301"),
    in_place("10_idiv", "a[i] /= b[i]", "WL301"),
    in_place("10_iadd", "a[i] += b[i]", None),
    in_place("10_isub", "a[i] -= b[i]", None),
    in_place("10_explicit_mul", "a[i] = a[i] * b[i]", "WL301"),
    in_place("10_explicit_add", "a[i] = a[i] + b[i]", None),
    in_place("10_imul_const", "a[i] *= 3.0", None),
    in_place("10_ipow", "a[i] = a[i] * a[i]", "WL108"),
    one_side("10_imul_grad_through_b_only", "a[i] *= b[i]", "b", "WL301"),
    one_side("10_idiv_grad_through_b_only", "a[i] /= b[i]", "b", "WL301"),
    one_side("10_explicit_mul_grad_through_b_only", "a[i] = a[i] * b[i]", "b", "WL301"),
    case(
        "10_local_scalar_ops",
        kernel(
            "a: F, b: F, y: F",
            "s = a[i]\ns *= b[i]\ns /= a[i] + 2.0\ns += b[i]\ns -= 0.5 * a[i]\ny[i] = s",
        ),
        CHAIN.replace("[a, b])", "[a, b, y])").replace("[a, loss]", "[y, loss]"),
        fresh="a, b, y = zeros(3), zeros(3), zeros(3)",
    ),
    case(
        "10_iadd_on_array_read_nonlinearly",
        kernel("a: F, b: F", "a[i] += b[i]"),
        CHAIN.replace("[x, b]", "[a, b]"),
        wrong="WL101",
        fresh="a, b = zeros(3), zeros(3)",
    ),
]

# -- components -------------------------------------------------------------------------

PLAIN = "wp.launch(k, 3, [x, y]); wp.launch(total, 3, [y, loss])"
PAIR = "@wp.struct\nclass P:\n    v: wp.vec3\n    m: float\n\n\n@wp.struct\nclass O:\n    q: P\n\n\n"


def local(name: str, body: str, wrong: str | None = None, above: str = "", hint: str | None = None) -> Case:
    return case(name, kernel("x: F, y: F", body, above), PLAIN, wrong=wrong, hint=hint, fresh="y = zeros(3)")


def element(
    name: str, kind: str, body: str, read: str, wrong: str | None = None, hint: str | None = None
) -> Case:
    above = PAIR if kind == "P" else ""
    write = kernel(f"x: F, a: wp.array(dtype={kind})", body, above)
    use = f"\n\n@wp.kernel\ndef r(a: wp.array(dtype={kind}), y: F):\n    i = wp.tid()\n    y[i] = {read}\n"
    recorded = "wp.launch(k, 3, [x, a]); wp.launch(r, 3, [a, y]); wp.launch(squares, 3, [y, loss])"
    fresh = f"a, y = zeros(3, {kind}), zeros(3)"
    return case(name, write + use, recorded, wrong=wrong, hint=hint, fresh=fresh)


COMPONENTS = [
    local("11_local_once", "v = wp.vec3()\nv[0] = x[i] * x[i]\nv[1] = 2.0 * x[i]\ny[i] = wp.dot(v, v)"),
    local("11_local_twice", "v = wp.vec3()\nv[0] = x[i]\nv[0] = x[i] * x[i]\ny[i] = v[0] * v[0]", "WL302"),
    local(
        "11_local_read_between",
        "v = wp.vec3(x[i], 1.0, 1.0)\ns = v[0] * v[0]\nv[0] = 3.0 * x[i]\ny[i] = s + v[0]",
        "WL302",
    ),
    local("11_local_self", "v = wp.vec3(x[i], 1.0, 1.0)\nv[0] = v[0] * v[0]\ny[i] = v[0]", "WL302"),
    local("11_local_iadd", "v = wp.vec3()\nv[0] = x[i]\nv[0] += x[i] * x[i]\ny[i] = v[0] * v[0]"),
    local("11_local_imul", "v = wp.vec3(x[i], 1.0, 1.0)\nv[0] *= x[i]\ny[i] = v[0]", "WL302"),
    local(
        "11_mat_twice",
        "m = wp.mat22()\nm[0, 1] = x[i]\nm[0, 1] = x[i] * x[i] * m[0, 1]\ny[i] = m[0, 1] * m[0, 1]",
        "WL302",
    ),
    local(
        "11_loop_component",
        "v = wp.vec3(x[i], x[i], x[i])\nfor j in range(3):\n    v[j] = v[j] * x[i]\n"
        "y[i] = v[0] + 2.0 * v[1] + 3.0 * v[2]",
        "WL302",
    ),
    element("11_arr_once", "wp.vec3", "a[i][0] = x[i] * x[i]\na[i][1] = 2.0 * x[i]", "wp.dot(a[i], a[i])"),
    element("11_arr_twice", "wp.vec3", "a[i][0] = x[i]\na[i][0] = x[i] * x[i]", "a[i][0]"),
    element("11_arr_self", "wp.vec3", "a[i][0] = x[i]\na[i][0] = a[i][0] * a[i][0]", "a[i][0]", "WL302"),
    element("11_arr_iadd", "wp.vec3", "a[i][0] += x[i] * x[i]", "a[i][0]"),
    local("42_struct_local_once", "s = P()\ns.m = x[i] * x[i]\ny[i] = s.m", above=PAIR),
    local("42_struct_local_twice_indep", "s = P()\ns.m = x[i]\ns.m = x[i] * x[i]\ny[i] = s.m", above=PAIR),
    local("42_struct_local_twice_self", "s = P()\ns.m = x[i]\ns.m = s.m * s.m\ny[i] = s.m", above=PAIR),
    local(
        "42_struct_local_vec_field",
        "s = P()\ns.v = wp.vec3(x[i], x[i] * x[i], 0.0)\ny[i] = s.v[1]",
        above=PAIR,
    ),
    local(
        "42_struct_local_vec_field_comp",
        "s = P()\ns.v[1] = x[i] * x[i]\ny[i] = s.v[1]",
        "WL302",
        PAIR,
    ),
    local(
        "42_struct_local_ctor",
        "s = P(wp.vec3(x[i], 0.0, 0.0), x[i] * x[i])\ny[i] = s.m + s.v[0]",
        above=PAIR,
    ),
    local("42_struct_local_iadd", "s = P()\ns.m = x[i]\ns.m += x[i] * x[i]\ny[i] = s.m", above=PAIR),
    local(
        "42_struct_local_from_func",
        "s = mk(x[i])\ny[i] = s.m",
        above=PAIR + "@wp.func\ndef mk(a: float):\n    s = P()\n    s.m = a * a\n    return s\n\n\n",
    ),
]
FORMS = {
    "local v.x = e": ("v = wp.vec3()", "v.x = e", "v[0]"),
    "local v.x += e": ("v = wp.vec3()", "v.x += e", "v[0]"),
    "local v += vec": ("v = wp.vec3()", "v += wp.vec3(e, 0.0, 0.0)", "v[0]"),
    "local v *= s": ("v = wp.vec3(1.0, 1.0, 1.0)", "v *= e", "v[0]"),
    "local m[0,1] = e": ("m = wp.mat22()", "m[0, 1] = e", "m[0, 1]"),
    "local m[0,1] += e": ("m = wp.mat22()", "m[0, 1] += e", "m[0, 1]"),
    "local m[0] = vec (row)": ("m = wp.mat22()", "m[0] = wp.vec2(e, 0.0)", "m[0, 0]"),
    "local m[0][1] = e": ("m = wp.mat22()", "m[0][1] = e", "m[0, 1]"),
    "local q[3] = e": ("q = wp.quat(0.0, 0.0, 0.0, 0.0)", "q[3] = e", "q[3]"),
    "local q.w = e": ("q = wp.quat(0.0, 0.0, 0.0, 0.0)", "q.w = e", "q[3]"),
    "local t.p = vec": (
        "t = wp.transform_identity()",
        "t.p = wp.vec3(e, 0.0, 0.0)",
        "wp.transform_get_translation(t)[0]",
    ),
    "local t[0] = e": ("t = wp.transform_identity()", "t[0] = e", "wp.transform_get_translation(t)[0]"),
    "local s.m = e": ("s = P()", "s.m = e", "s.m"),
    "local s.v = vec": ("s = P()", "s.v = wp.vec3(e, 0.0, 0.0)", "s.v[0]"),
    "local s.v[0] = e": ("s = P()", "s.v[0] = e", "s.v[0]"),
    "local s.v.x = e": ("s = P()", "s.v.x = e", "s.v[0]"),
    "local s.v[0] += e": ("s = P()", "s.v[0] += e", "s.v[0]"),
    "local s.q.m = e (nested)": ("s = O()", "s.q.m = e", "s.q.m"),
    "local s.q = struct (nested)": ("s = O()\nu = P()\nu.m = e", "s.q = u", "s.q.m"),
    "local v = s.v; v[0] = e; s.v = v": ("s = P()", "v = s.v\nv[0] = e\ns.v = v", "s.v[0]"),
    "local tuple unpack": ("", "p, r = e, 2.0 * e", "p"),
    "ternary": ("", "p = e if x[i] > 0.0 else 0.0", "p"),
    "wp.where": ("", "p = wp.where(x[i] > 0.0, e, 0.0)", "p"),
    "vec from slice v[0:2]": ("v = wp.vec3(e, e, 0.0)", "w = v[0:2]", "w[0]"),
    "v[0:2] = vec2": ("v = wp.vec3()", "v[0:2] = wp.vec2(e, 0.0)", "v[0]"),
}
LOST = {"local s.v[0] = e", "local s.v.x = e", "local s.v[0] += e"}
FORM_CASES = [
    local(
        f"43_{name}",
        "\n".join(line for line in ("e = x[i] * x[i]", before, statement, f"y[i] = {read}") if line),
        "WL302" if name in LOST else None,
        PAIR,
    )
    for name, (before, statement, read) in FORMS.items()
]
ELEMENTS = {
    "va[i] = vec": ("wp.vec3", "a[i] = wp.vec3(e, 0.0, 0.0)", "a[i][0]"),
    "va[i].x = e": ("wp.vec3", "a[i].x = e", "a[i][0]"),
    "va[i].x += e": ("wp.vec3", "a[i].x += e", "a[i][0]"),
    "va[i] += vec": ("wp.vec3", "a[i] += wp.vec3(e, 0.0, 0.0)", "a[i][0]"),
    "atomic_add(va,i,vec)": ("wp.vec3", "wp.atomic_add(a, i, wp.vec3(e, 0.0, 0.0))", "a[i][0]"),
    "ma[i][0,1] = e": ("wp.mat22", "a[i][0, 1] = e", "a[i][0, 1]"),
    "ma[i][0] = vec": ("wp.mat22", "a[i][0] = wp.vec2(e, 0.0)", "a[i][0, 0]"),
    "ma[i][0,1] += e": ("wp.mat22", "a[i][0, 1] += e", "a[i][0, 1]"),
    "sa[i] = struct": ("P", "u = P(wp.vec3(0.0, 0.0, 0.0), e)\na[i] = u", "a[i].m"),
    "ta[i].p = vec": (
        "wp.transform",
        "a[i].p = wp.vec3(e, 0.0, 0.0)",
        "wp.transform_get_translation(a[i])[0]",
    ),
    "sa[i].m = e": ("P", "a[i].m = e", "a[i].m"),
    "sa[i].m += e": ("P", "a[i].m += e", "a[i].m"),
    "sa[i].v = vec": ("P", "a[i].v = wp.vec3(e, 0.0, 0.0)", "a[i].v[0]"),
    "sa[i].v.x = e": ("P", "a[i].v.x = e", "a[i].v[0]"),
    "sa[i].v[0] += e": ("P", "a[i].v[0] += e", "a[i].v[0]"),
    "sa[i].v[0] = e": ("P", "a[i].v[0] = e", "a[i].v[0]"),
    "sa[i].v += vec": ("P", "a[i].v += wp.vec3(e, 0.0, 0.0)", "a[i].v[0]"),
    "s=sa[i]; s.m=e; sa[i]=s": ("P", "s = a[i]\ns.m = e\na[i] = s", "a[i].m"),
    "v=va[i]; v[0]=e; va[i]=v": ("wp.vec3", "v = a[i]\nv[0] = e\na[i] = v", "a[i][0]"),
}
HINTS = {"v=va[i]; v[0]=e; va[i]=v": "WL302"}
"""What the element held before gets the adjoint of the new component: here nobody asks for that."""
ELEMENT_CASES = [
    element(f"43_{name}", kind, f"e = x[i] * x[i]\n{statement}", read, hint=HINTS.get(name))
    for name, (kind, statement, read) in ELEMENTS.items()
]

# -- loops ------------------------------------------------------------------------------


def loop(name, body, wrong=None, hint=None, *, n="3", x="[0.7, 1.1, 1.6]", above="", turns="n") -> Case:
    text = body.replace("TURNS", turns)
    kernels = kernel("x: F, y: F, n: int", text, above)
    recorded = f"wp.launch(k, 1, [x, y, {n}]); wp.launch(squares, 1, [y, loss])"
    return case(name, kernels, recorded, wrong=wrong, hint=hint, x=x, fresh="y = zeros(1)")


PRODUCT = "p = float(1.0)\nfor j in range(TURNS):\n    p *= 0.95 * x[j % 3]\ny[0] = p"
MAXIMUM = "m = float(-1.0e6)\nfor j in range(n):\n    m = wp.max(m, x[j])\ny[0] = m"
EXIT = "s = float(0.0)\nfor j in range(n):\n    if x[j] > 1.5:\n        break\n    s += x[j] * x[j]\ny[0] = s"
LOOPS = [
    loop("12_dyn_prod", PRODUCT, "WL303"),
    loop("12_dyn_sum", "s = float(0.0)\nfor j in range(n):\n    s += x[j] * x[j]\ny[0] = s"),
    loop(
        "12_dyn_used_after",
        "s = float(0.0)\nw = float(0.0)\nfor j in range(n):\n    w += x[j]\n    s += x[j] * x[j]\n"
        "y[0] = s / w",
        "WL303",
    ),
    loop(
        "12_dyn_used_after_linear", "s = float(0.0)\nfor j in range(n):\n    s += x[j] * x[j]\ny[0] = 3.0 * s"
    ),
    loop(
        "12_dyn_used_after_square", "s = float(0.0)\nfor j in range(n):\n    s += x[j]\ny[0] = s * s", "WL303"
    ),
    loop("12_dyn_carried", "v = float(0.5)\nfor j in range(n):\n    v = wp.sin(v) + x[j]\ny[0] = v", "WL303"),
    loop("12_dyn_last_assigned", "v = float(0.0)\nfor j in range(n):\n    v = x[j] * x[j]\ny[0] = v"),
    loop("12_dyn_max", MAXIMUM, None, "WL303"),
    loop("12_dyn_max_first_is_largest", MAXIMUM, "WL303", x="[1.6, 1.1, 0.7]"),
    loop("12_dyn_break_never_taken", EXIT, None, "WL303", x="[0.7, 1.1, 1.4]"),
    loop("12_dyn_break_in_middle", EXIT, "WL303", x="[0.7, 1.6, 1.1]"),
    loop(
        "12_dyn_cond_inner",
        "for j in range(n):\n    if x[j] > 1.0:\n        wp.atomic_add(y, 0, x[j] * x[j])",
    ),
    loop(
        "12_while_prod",
        "p = float(1.0)\nj = int(0)\nwhile j < n:\n    p = p * x[j]\n    j = j + 1\ny[0] = p",
        "WL303",
    ),
    loop(
        "12_while_sum",
        "s = float(0.0)\nj = int(0)\nwhile j < n:\n    s += x[j] * x[j]\n    j = j + 1\ny[0] = s",
        "WL303",
    ),
    loop(
        "12_func_loop",
        "s, w = sums(x, n)\ny[0] = s / w",
        above="@wp.func\ndef sums(x: F, n: int):\n    s = float(0.0)\n    w = float(0.0)\n"
        "    for j in range(n):\n        w += x[j]\n        s += x[j] * x[j]\n    return s, w\n\n\n",
    ),
    loop(
        "12_func_prod",
        "y[0] = prod(x, n)",
        "WL303",
        above="@wp.func\ndef prod(x: F, n: int):\n    p = float(1.0)\n"
        "    for j in range(n):\n        p *= x[j]\n    return p\n\n\n",
    ),
    loop("12_static_prod", PRODUCT, turns="3"),
    loop("12_static_prod_16", PRODUCT, turns="16"),
    loop("12_static_prod_over", PRODUCT, "WL303", turns="17"),
]

# -- selections and singular points -----------------------------------------------------

SOFTPLUS = "z = x[i]\ny[i] = wp.where(z > 20.0, z, wp.log(1.0 + wp.exp(z)))"


def at(name: str, body: str, x: str, wrong: str | None = None, hint: str | None = None) -> Case:
    recorded = "wp.launch(k, 2, [x, y]); wp.launch(total, 2, [y, loss])"
    return case(name, kernel("x: F, y: F", body), recorded, wrong=wrong, hint=hint, x=x, fresh="y = zeros(2)")


WHERE = [
    at("15_softplus_where_z30", SOFTPLUS, "[1.0, 30.0]", None, "WL304"),
    at("15_softplus_where_z100", SOFTPLUS, "[1.0, 100.0]", "WL304"),
    at(
        "15_softplus_if_z100",
        "z = x[i]\nr = z\nif z <= 20.0:\n    r = wp.log(1.0 + wp.exp(z))\ny[i] = r",
        "[1.0, 100.0]",
    ),
    at(
        "15_softplus_ternary_z100",
        "z = x[i]\ny[i] = z if z > 20.0 else wp.log(1.0 + wp.exp(z))",
        "[1.0, 100.0]",
    ),
    at("15_sqrt_where_neg", "z = x[i]\ny[i] = wp.where(z > 0.0, wp.sqrt(z), 0.0)", "[-1.0, 4.0]", "WL304"),
    at(
        "15_sqrt_if_neg", "z = x[i]\nr = float(0.0)\nif z > 0.0:\n    r = wp.sqrt(z)\ny[i] = r", "[-1.0, 4.0]"
    ),
    local("15_ternary_selects_array_element", "v = x[i] if i > 0 else x[2 - i]\ny[i] = v * v"),
    at("15_div_where_at0", "z = x[i]\ny[i] = wp.where(z == 0.0, 1.0, wp.sin(z) / z)", "[0.0, 1.0]", "WL304"),
]
FLAT = [
    local("16_k_round", "y[i] = x[i] + wp.round(x[i]) * 2.0"),
    local("16_k_clamp", "y[i] = wp.clamp(x[i], 0.8, 1.2)"),
    local("16_k_frac", "y[i] = wp.frac(x[i])", "WL205"),
    local("16_k_mod", "y[i] = wp.mod(x[i], 1.0)"),
    local("16_k_f64_to_f32", "y[i] = float(wp.float64(x[i]) * wp.float64(x[i]))"),
]
SINGULAR = {
    "sqrt": ("wp.sqrt(v)", True),
    "pow_0_half": ("wp.pow(v, 0.5)", True),
    "cbrt": ("wp.cbrt(v)", True),
    "hand_norm": ("wp.sqrt(wp.dot(wp.vec3(v, v, v), wp.vec3(v, v, v)))", True),
    "acos_1": ("wp.acos(v + 1.0)", False),
    "pow_0_2": ("wp.pow(v, 2.0)", False),
    "pow_op_0_2": ("v ** 2.0", False),
    "atan2_00": ("wp.atan2(v, v)", False),
    "abs": ("wp.abs(v)", False),
    "length": ("wp.length(wp.vec3(v, 0.0, 0.0))", False),
    "length_sq": ("wp.length_sq(wp.vec3(v, v, v))", False),
    "normalize": ("wp.normalize(wp.vec3(v, 0.0, 0.0))[0]", False),
    "min_tie": ("wp.min(v, -v)", False),
    "max_tie": ("wp.max(v, 0.0)", False),
    "smooth_len": ("wp.sqrt(v * v + 1.0e-6)", False),
}
SINGULAR_CASES = [
    local(f"18_{name}_at_0", f"v = x[i]\ny[i] = v + {text}", hint="WL305" if reported else None)
    for name, (text, reported) in SINGULAR.items()
]

# -- custom adjoints, counters, native code ---------------------------------------------


def custom(sign: str) -> str:
    return (
        "@wp.func\ndef sq(v: float):\n    return v * v\n\n\n"
        "@wp.func_grad(sq)\ndef adj_sq(v: float, adj_ret: float):\n"
        f"    wp.adjoint[v] {sign} 2.0 * v * adj_ret\n\n\n"
    )


def array_adjoint(sign: str) -> str:
    return (
        "@wp.func\ndef sq(v: F, j: int):\n    return v[j] * v[j]\n\n\n"
        "@wp.func_grad(sq)\ndef adj_sq(v: F, j: int, adj_ret: float):\n"
        f"    wp.adjoint[v][j] {sign} 2.0 * v[j] * adj_ret\n\n\n"
    )


COUNT = "wp.launch(k, 3, [c, x, y]); wp.launch(total, 3, [y, loss])"
REPLAYED = """
@wp.func
def claim(c: wp.array(dtype=int), ids: wp.array(dtype=int), i: int):
    j = wp.atomic_add(c, 0, 1)
    ids[i] = j
    return j


@wp.func_replay(claim)
def replay_claim(c: wp.array(dtype=int), ids: wp.array(dtype=int), i: int):
    return ids[i]


"""
COUNTER = "y, c = zeros(3), wp.zeros(1, dtype=int)"
CUSTOM = [
    local("17_k_ok", "v = x[i]\ny[i] = sq(v) + 3.0 * v", above=custom("+=")),
    local("17_k_assign_single", "y[i] = sq(x[i])", above=custom("=")),
    local("17_k_assign_shared", "v = x[i]\ny[i] = sq(v) + 3.0 * v", "WL401", custom("=")),
    local("17_k_assign_twice", "v = x[i]\ny[i] = sq(v) + sq(v)", "WL401", custom("=")),
    local("17_k_arr", "y[i] = sq(x, i) + 3.0 * x[i]", above=array_adjoint("+=")),
    local("17_k_arr_assign", "y[i] = sq(x, i) + 3.0 * x[i]", "WL401", array_adjoint("=")),
    local(
        "17_k_forgot",
        "y[i] = times(x[i], x[i])",
        "WL401",
        "@wp.func\ndef times(v: float, w: float):\n    return v * w\n\n\n"
        "@wp.func_grad(times)\ndef adj_times(v: float, w: float, adj_ret: float):\n"
        "    wp.adjoint[v] += w * adj_ret\n\n\n",
    ),
    case(
        "19_atomic_counter_index",
        kernel("c: wp.array(dtype=int), x: F, y: F", "j = wp.atomic_add(c, 0, 1)\ny[j] = x[i] * x[i]"),
        COUNT,
        wrong="WL403",
        fresh=COUNTER,
    ),
    case(
        "19_atomic_counter_with_replay",
        kernel(
            "c: wp.array(dtype=int), ids: wp.array(dtype=int), x: F, y: F",
            "j = claim(c, ids, i)\ny[j] = x[i] * x[i]",
            REPLAYED.lstrip(),
        ),
        COUNT.replace("[c, x", "[c, ids, x"),
        fresh=COUNTER + "; ids = wp.zeros(3, dtype=int)",
    ),
    case(
        "19_atomic_counter_result_unused",
        kernel("c: wp.array(dtype=int), x: F, y: F", "wp.atomic_add(c, 0, 1)\ny[i] = x[i] * x[i]"),
        COUNT,
        fresh=COUNTER,
    ),
    case(
        "19_atomic_counter_gather",
        kernel(
            "c: wp.array(dtype=int), idx: wp.array(dtype=int), x: F, y: F",
            "j = wp.atomic_add(c, 0, 1)\ny[i] = x[idx[j]] * x[idx[j]]",
        ),
        COUNT.replace("[c, x", "[c, idx, x"),
        wrong="WL403",
        fresh=COUNTER + "; idx = wp.array([2, 0, 1], dtype=int)",
    ),
    local(
        "20_native_k_no",
        "native(x, y, i)",
        "WL207",
        '@wp.func_native(snippet="y[i] = x[i] * x[i];")\ndef native(x: F, y: F, i: int): ...\n\n\n',
    ),
    local(
        "20_native_k_yes",
        "native(x, y, i)",
        None,
        '@wp.func_native(\n    snippet="y[i] = x[i] * x[i];",\n'
        '    adj_snippet="adj_x[i] += 2.0f * x[i] * adj_y[i];",\n)\n'
        "def native(x: F, y: F, i: int): ...\n\n\n",
    ),
    local(
        "20_native_k_val",
        "y[i] = native(x[i])",
        "WL207",
        '@wp.func_native(snippet="return v * v;")\ndef native(v: float) -> float: ...\n\n\n',
    ),
]

# -- clamps, atomics, stencils ----------------------------------------------------------


def clamp(name: str, body: str, c: float, wrong: str | None = None, hint: str | None = None) -> Case:
    recorded = (
        f"wp.launch(scale, 3, [x, 2.0, a]); wp.launch(k, 3, [a, {c}]); wp.launch(squares, 3, [a, loss])"
    )
    kernels = kernel("a: F, c: float", body)
    return case(name, kernels, recorded, wrong=wrong, hint=hint, fresh="a = zeros(3)")


def reduced(name: str, body: str, start: float, wrong: str | None = None) -> Case:
    recorded = "wp.launch(k, 3, [x, m]); wp.launch(squares, 1, [m, loss])"
    fresh = f"m = wp.full(1, {start}, dtype=float, requires_grad=True)"
    return case(name, kernel("x: F, m: F", body), recorded, wrong=wrong, fresh=fresh)


def returned(name: str, body: str, wrong: str) -> Case:
    recorded = "wp.launch(k, 3, [x, acc, y]); wp.launch(total, 3, [y, loss])"
    return case(
        name, kernel("x: F, acc: F, y: F", body), recorded, wrong=wrong, fresh="acc, y = zeros(1), zeros(3)"
    )


def stencil(name: str, body: str, wrong: str | None = None, threads: int = 4) -> Case:
    recorded = (
        f"wp.launch(scale, 4, [x, 1.0, a]); wp.launch(k, {threads}, [a]); wp.launch(squares, 4, [a, loss])"
    )
    kernels = kernel("a: F", body)
    return case(name, kernels, recorded, wrong=wrong, x="[0.7, 1.1, 1.6, 0.9]", fresh="a = zeros(4)")


TOGETHER = [
    clamp("23_clamp_gt_engaged", "if a[i] > c:\n    a[i] = c", 2.5, "WL108"),
    clamp("23_clamp_gt_not_engaged", "if a[i] > c:\n    a[i] = c", 99.0, None, "WL108"),
    clamp("23_clamp_ge_engaged", "if a[i] >= c:\n    a[i] = c", 2.5),
    clamp("23_clamp_min_engaged", "a[i] = wp.min(a[i], c)", 2.5),
    clamp("23_reflect_engaged", "if a[i] > c:\n    a[i] = 2.0 * c - a[i]", 2.5, "WL108"),
    clamp("23_reflect_not_engaged", "if a[i] > c:\n    a[i] = 2.0 * c - a[i]", 99.0, None, "WL108"),
    reduced("28_atomic_min", "wp.atomic_min(m, 0, x[i])", 99.0),
    reduced("28_atomic_max", "wp.atomic_max(m, 0, x[i])", -99.0),
    reduced("28_atomic_sub", "wp.atomic_sub(m, 0, x[i] * x[i])", 0.0),
    returned(
        "28_atomic_add_return_value_nonlinear", "old = wp.atomic_add(acc, 0, x[i])\ny[i] = old * old", "WL206"
    ),
    returned(
        "28_atomic_add_return_value_linear", "old = wp.atomic_add(acc, 0, x[i])\ny[i] = 2.0 * old", "WL206"
    ),
    returned(
        "28_read_accumulator_in_same_kernel",
        "wp.atomic_add(acc, 0, x[i])\ny[i] = acc[0] * acc[0]",
        "WL108",
    ),
    local("28_store_many_threads_same_element", "y[0] = x[i] * x[i]", "WL110"),
    case(
        "28_scatter_augmented_add",
        kernel("x: F, idx: wp.array(dtype=int), y: F", "y[idx[i]] += x[i] * x[i]"),
        "wp.launch(k, 3, [x, idx, y]); wp.launch(squares, 2, [y, loss])",
        fresh="y, idx = zeros(2), wp.array([0, 1, 0], dtype=int)",
    ),
    stencil(
        "29_stencil_in_place_linear", "if i > 0 and i < 3:\n    a[i] = 0.5 * (a[i - 1] + a[i + 1])", "WL108"
    ),
    stencil("29_stencil_in_place_nonlinear", "if i > 0 and i < 3:\n    a[i] = a[i - 1] * a[i + 1]", "WL108"),
    stencil("29_prefix_in_place_linear", "if i > 0:\n    a[i] = a[i] + a[i - 1]", "WL108"),
    stencil("29_swap_elements_linear", "t = a[0]\na[0] = a[1]\na[1] = t", None, 1),
    stencil("29_swap_elements_nonlinear", "t = a[0] * a[0]\na[0] = a[1]\na[1] = t", "WL108", 1),
]

CASES: list[Case] = [
    *IN_PLACE,
    *COMPONENTS,
    *FORM_CASES,
    *ELEMENT_CASES,
    *LOOPS,
    *WHERE,
    *FLAT,
    *SINGULAR_CASES,
    *CUSTOM,
    *TOGETHER,
]
