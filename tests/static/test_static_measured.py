"""One small program a pattern and verdict: wrong on Warp 1.19 and found, or right and left alone.

The gradients were measured against finite differences. Whether a wrong one is found without running the
program, and by which rule, is what each row says; ``None`` stands for silence above ``note``.
"""

from __future__ import annotations

import textwrap

import pytest

KERNELS = """
@wp.kernel
def product(a: wp.array(dtype=float), b: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a[i] * b[i]


"""

HOST = """
x = wp.array([0.7, 1.1, 1.6], dtype=float, requires_grad=True)
a, b, loss = grad(), grad(), grad(1)
{before}
tape = wp.Tape()
with tape:
{recorded}
{between}
tape.backward(loss)
print(x.grad.numpy())
"""


def kernel(body: str, *, above: str = "", arguments: str = "", launch: str = "") -> str:
    """A program around one kernel from x to a: its statements, what stands above it, what else it takes."""
    head = "x: wp.array(dtype=float), y: wp.array(dtype=float)" + (f", {arguments}" if arguments else "")
    lines = textwrap.indent("i = wp.tid()\n" + body, "    ")
    more = f", {launch}" if launch else ""
    return f"{above}\n@wp.kernel\ndef k({head}):\n{lines}\n" + HOST.format(
        before="",
        recorded=f"    wp.launch(k, 3, [x, a{more}])\n    wp.launch(total, 3, [a, loss])",
        between="",
    )


def host(recorded: str, *, before: str = "", between: str = "", above: str = KERNELS) -> str:
    """A program around what is recorded, with a, b and loss to work on."""
    return above + HOST.format(before=before, recorded=textwrap.indent(recorded, "    "), between=between)


A, B, LOSS = (
    "wp.launch(scale, 3, [x, 2.0], [a])\n",
    "wp.launch(square, 3, [a], [b])\n",
    "wp.launch(total, 3, ",
)
STRUCT = "@wp.struct\nclass Part:\n    v: wp.vec3\n    m: float\n\n\n"
HOLDER = """
@wp.struct
class Holder:
    a: wp.array(dtype=float)


@wp.kernel
def fill(h: Holder, x: wp.array(dtype=float)):
    i = wp.tid()
    h.a[i] = x[i]


@wp.kernel
def use(h: Holder, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = h.a[i] * h.a[i] * x[i]


"""
EPOCHS = """
x = wp.array([0.7, 1.1, 1.6], dtype=float, requires_grad=True)
for epoch in range(5):
    a, loss = grad(), grad(1)
    tape = wp.Tape()
    with tape:
        wp.launch(square, 3, [x], [a])
        wp.launch(total, 3, [a], [loss])
    {zero}
    tape.backward(loss)
    wp.launch(scale, 3, [x.grad, -0.1], [x])
    {after}
"""
PING_PONG = """
x = wp.array([0.7, 1.1, 1.6], dtype=float, requires_grad=True)
ring, loss = [grad(), grad()], grad(1)
tape = wp.Tape()
with tape:
    wp.launch(scale, 3, [x, 1.0], [ring[0]])
    for n in range(4):
        wp.launch({step}, 3, [ring[n % 2]{more}], [ring[1 - n % 2]])
    wp.launch(total, 3, [ring[0]], [loss])
tape.backward(loss)
"""

ROWS = [
    ("copy over a value that is needed", "WL102", host(A + B + "wp.copy(a, b)\n" + LOSS + "[a, loss])")),
    (
        "copy over a value read linearly",
        None,
        host(A + "wp.launch(scale, 3, [a, 3.0], [b])\nwp.copy(a, b)\n" + LOSS + "[a, loss])"),
    ),
    (
        "copy to an array without a gradient",
        "WL201",
        host(A + "wp.copy(c, a)\n" + LOSS + "[c, loss])", before="c = wp.zeros(3, dtype=float)"),
    ),
    ("copy to a fresh array", None, host(A + "wp.copy(b, a)\n" + LOSS + "[b, loss])")),
    ("two buffers in turn, nonlinear", "WL103", PING_PONG.format(step="square", more="")),
    ("two buffers in turn, linear", None, PING_PONG.format(step="scale", more=", 0.5")),
    (
        "one array in and out, nonlinear",
        "WL104",
        host(A + "wp.launch(square, 3, [a], [a])\n" + LOSS + "[a, loss])"),
    ),
    (
        "one array in and out, linear",
        None,
        host(A + "wp.launch(scale, 3, [a, 3.0], [a])\n" + LOSS + "[a, loss])"),
    ),
    ("reset of a value that is needed", "WL105", host(A + B + "a.fill_(5.0)\n" + LOSS + "[a, loss])")),
    ("reset before the first use", None, host("loss.zero_()\n" + A + B + LOSS + "[b, loss])")),
    (
        "array of a struct rewritten",
        "WL101",
        host(
            "wp.launch(fill, 3, [h, x])\nwp.launch(use, 3, [h, x], [a])\nwp.launch(fill, 3, [h, a])\n"
            + LOSS
            + "[h.a, loss])",
            before="h = Holder()\nh.a = grad()",
            above=HOLDER,
        ),
    ),
    (
        "array of a struct, each used once",
        None,
        host(
            "wp.launch(fill, 3, [h, x])\nwp.launch(use, 3, [h, x], [a])\n" + LOSS + "[a, loss])",
            before="h = Holder()\nh.a = grad()",
            above=HOLDER,
        ),
    ),
    (
        "array of a struct that is given another array",
        "WL106",
        host(
            "for n in range(2):\n    h.a = wp.full(3, 1.0 + n, dtype=float, requires_grad=True)\n"
            "    c = grad()\n    wp.launch(use, 3, [h, x], [c])\n    wp.launch(total, 3, [c, loss])",
            before="h = Holder()",
            above=HOLDER,
        ),
    ),
    (
        "intermediate without a gradient",
        "WL201",
        host("c = wp.zeros(3, dtype=float)\nwp.launch(square, 3, [x], [c])\n" + LOSS + "[c, loss])"),
    ),
    (
        "intermediate like the parameter",
        None,
        host("c = wp.zeros_like(x)\nwp.launch(square, 3, [x], [c])\n" + LOSS + "[c, loss])"),
    ),
    (
        "kernel without an adjoint",
        "WL202",
        host(
            "wp.launch(plain, 3, [x], [a])\n" + LOSS + "[a, loss])",
            above="@wp.kernel(enable_backward=False)\n"
            "def plain(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
            "    i = wp.tid()\n    y[i] = x[i] * x[i]\n\n\n",
        ),
    ),
    ("gradients never zeroed", "WL501", EPOCHS.format(zero="", after="")),
    ("gradients zeroed after each step", None, EPOCHS.format(zero="", after="tape.zero()")),
    ("parameter changed before backward", "WL106", host(A + B + LOSS + "[b, loss])", between="a.zero_()")),
    ("only the loss reset before backward", None, host(A + B + LOSS + "[b, loss])", between="loss.zero_()")),
    (
        "value replaced after the loss",
        "WL107",
        host(A + B + LOSS + "[b, loss])\nwp.launch(scale, 3, [b, 0.1], [a])"),
    ),
    (
        "value read after the loss",
        None,
        host(A + B + LOSS + "[b, loss])\nwp.launch(square, 3, [b], [grad()])"),
    ),
    ("multiplied in place", "WL301", kernel("y[i] = x[i]\ny[i] *= x[i] * x[i]")),
    ("added in place", None, kernel("y[i] = x[i]\ny[i] += x[i] * x[i]")),
    (
        "component assigned twice",
        "WL302",
        kernel("v = wp.vec3(x[i], 1.0, 1.0)\nv[0] = v[0] * v[0]\ny[i] = v[0]"),
    ),
    ("component assigned once", None, kernel("v = wp.vec3()\nv[0] = x[i] * x[i]\ny[i] = v[0]")),
    (
        "component of a field",
        "WL302",
        kernel("s = Part()\ns.v[0] = x[i] * x[i]\ny[i] = s.v[0]", above=STRUCT),
    ),
    ("whole field", None, kernel("s = Part()\ns.v = wp.vec3(x[i], 1.0, 1.0)\ny[i] = s.v[0]", above=STRUCT)),
    (
        "component of a field of an element",
        "WL302",
        kernel(
            "s = parts[i]\ns.v[0] = x[i] * x[i]\nparts[i] = s\ny[i] = s.v[0]",
            above=STRUCT,
            arguments="parts: wp.array(dtype=Part)",
            launch="wp.zeros(3, dtype=Part, requires_grad=True)",
        ),
    ),
    (
        "field of an element",
        None,
        kernel(
            "s = parts[i]\ns.m = x[i] * x[i]\nparts[i] = s\ny[i] = s.m",
            above=STRUCT,
            arguments="parts: wp.array(dtype=Part)",
            launch="wp.zeros(3, dtype=Part, requires_grad=True)",
        ),
    ),
    (
        "product over a runtime bound",
        "WL303",
        kernel("p = float(1.0)\nfor j in range(n):\n    p *= x[j]\ny[i] = p", arguments="n: int", launch="3"),
    ),
    (
        "sum over a runtime bound",
        None,
        kernel(
            "p = float(0.0)\nfor j in range(n):\n    p += x[j] * x[j]\ny[i] = p",
            arguments="n: int",
            launch="3",
        ),
    ),
    (
        "product over a constant bound",
        None,
        kernel("p = float(1.0)\nfor j in range(3):\n    p *= x[j]\ny[i] = p"),
    ),
    (
        "retained and rewritten",
        "WL504",
        host(
            "wp.launch(square, 3, [x], [c])\nwp.launch(scale, 3, [x, 3.0], [c])\n" + LOSS + "[c, loss])",
            before="c = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)",
        ),
    ),
    (
        "retained and written once",
        None,
        host(
            "wp.launch(square, 3, [x], [c])\n" + LOSS + "[c, loss])",
            before="c = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)",
        ),
    ),
    (
        "exponential not selected",
        "WL304",
        kernel("z = 80.0 * x[i]\ny[i] = wp.where(z > 20.0, z, wp.log(1.0 + wp.exp(z)))"),
    ),
    (
        "exponential behind a test",
        None,
        kernel("r = x[i]\nif r <= 20.0:\n    r = wp.log(1.0 + wp.exp(r))\ny[i] = r"),
    ),
    (
        "adjoint that assigns",
        "WL401",
        kernel(
            "v = x[i]\ny[i] = sq(v) + 3.0 * v",
            above=(
                "@wp.func\ndef sq(v: float):\n    return v * v\n\n\n"
                "@wp.func_grad(sq)\ndef adj_sq(v: float, adj_ret: float):\n"
                "    wp.adjoint[v] = 2.0 * v * adj_ret\n\n"
            ),
        ),
    ),
    (
        "adjoint that adds",
        None,
        kernel(
            "v = x[i]\ny[i] = sq(v) + 3.0 * v",
            above=(
                "@wp.func\ndef sq(v: float):\n    return v * v\n\n\n"
                "@wp.func_grad(sq)\ndef adj_sq(v: float, adj_ret: float):\n"
                "    wp.adjoint[v] += 2.0 * v * adj_ret\n\n"
            ),
        ),
    ),
    (
        "claimed place",
        "WL403",
        kernel(
            "j = wp.atomic_add(c, 0, 1)\ny[j] = x[i] * x[i]",
            arguments="c: wp.array(dtype=int)",
            launch="wp.zeros(1, dtype=int)",
        ),
    ),
    (
        "counted",
        None,
        kernel(
            "wp.atomic_add(c, 0, 1)\ny[i] = x[i] * x[i]",
            arguments="c: wp.array(dtype=int)",
            launch="wp.zeros(1, dtype=int)",
        ),
    ),
    (
        "native code alone",
        "WL207",
        kernel(
            "y[i] = sq(x[i])",
            above=('@wp.func_native(snippet="return v * v;")\ndef sq(v: float) -> float: ...\n\n'),
        ),
    ),
    (
        "rewritten through dlpack",
        "WL101",
        host(
            A
            + B
            + "wp.launch(scale, 3, [w, 1.0], [wp.from_dlpack(wp.to_dlpack(a))])\n"
            + LOSS
            + "[b, loss])",
            before="w = wp.array([9.0, 9.0, 9.0], dtype=float)",
        ),
    ),
    (
        "read through dlpack",
        None,
        host(
            A
            + B
            + "wp.launch(scale, 3, [wp.from_dlpack(wp.to_dlpack(a)), 1.0], [wp.zeros(3, dtype=float)])\n"
            + LOSS
            + "[b, loss])"
        ),
    ),
    (
        "rewritten through a pointer",
        "WL106",
        host(A + B + LOSS + "[b, loss])", between="p = a.cptr()\np[0] = 9.0"),
    ),
    ("read through a pointer", None, host(A + B + LOSS + "[b, loss])", between="p = a.cptr()\nprint(p[0])")),
    ("limited in place", "WL108", kernel("y[i] = x[i]\nif y[i] > 1.0:\n    y[i] = 2.0 - y[i]")),
    ("limited on the way", None, kernel("y[i] = wp.min(x[i], 1.2)")),
    (
        "not recorded",
        "WL203",
        host("wp.launch(square, 3, [x], [a], record_tape=False)\n" + LOSS + "[a, loss])"),
    ),
    ("launched before the tape", "WL203", host(LOSS + "[a, loss])", before="wp.launch(square, 3, [x], [a])")),
    (
        "through the host",
        "WL204",
        host(A + "c = wp.array(np.sin(a.numpy()), dtype=float, requires_grad=True)\n" + LOSS + "[c, loss])"),
    ),
    (
        "decided on the host",
        None,
        host(A + "wp.launch(square if a.numpy()[0] > 0.1 else total, 3, [a], [b])\n" + LOSS + "[b, loss])"),
    ),
    (
        "value of an atomic operation",
        "WL206",
        kernel(
            "old = wp.atomic_add(acc, 0, x[i])\ny[i] = old * old",
            arguments="acc: wp.array(dtype=float)",
            launch="grad(1)",
        ),
    ),
    ("racing store", "WL110", kernel("y[0] = x[i] * x[i]")),
    ("scattered", None, kernel("wp.atomic_add(y, 0, x[i] * x[i])")),
    (
        "neighbours in place",
        "WL108",
        host(
            A + "wp.launch(gather, 3, [a])\n" + LOSS + "[a, loss])",
            above=(
                "@wp.kernel\ndef gather(x: wp.array(dtype=float)):\n    i = wp.tid()\n"
                "    if i > 0:\n        x[i] = x[i] + x[i - 1]\n\n\n"
            ),
        ),
    ),
    ("neighbours to another array", None, kernel("if i > 0 and i < 2:\n    y[i] = x[i - 1] * x[i + 1]")),
    ("same tape gone over twice", "WL501", host(A + B + LOSS + "[b, loss])", between="tape.backward(loss)")),
    (
        "second pass after zeroing",
        None,
        host(A + B + LOSS + "[b, loss])", between="tape.backward(loss)\nprint(x.grad.numpy())\ntape.zero()"),
    ),
    (
        "early return",
        None,
        kernel("if i >= n:\n    return\ny[i] = x[i] * x[i]", arguments="n: int", launch="2"),
    ),
]


@pytest.mark.parametrize(("expected", "program"), [pytest.param(e, p, id=n) for n, e, p in ROWS])
def test_row(expected, program, findings):
    found = {f.rule for f in findings(program) if f.rule != "WL205"}
    assert found == ({expected} if expected else set())
