"""Faults of a kernel's own adjoint, statement by statement: what is one, and what looks like one.

Every row was measured on Warp 1.13, 1.16 and 1.19: the statements of ``WRONG`` give a wrong
gradient (or NaN, for some data), those of ``RIGHT`` a right one.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from warplint.source import discover
from warplint.source.imports import ImportResolver
from warplint.static.host.core import Project
from warplint.static.host.library import Interpreter
from warplint.static.host.values import Function
from warplint.static.kernels.summary import Fault
from warplint.versions import concern

HEADER = """
import warp as wp

F = wp.array(dtype=float)
I = wp.array(dtype=int)
V = wp.array(dtype=wp.vec3)


@wp.struct
class Body:
    v: wp.vec3
    m: float


@wp.struct
class Pair:
    inner: Body


@wp.func
def total(x: F, n: int):
    s = float(0.0)
    for j in range(n):
        s += x[j] * x[j]
    return s


@wp.func
def inverse_total(x: F, n: int):
    s = float(1.0)
    for j in range(n):
        s += x[j] * x[j]
    return 1.0 / s


@wp.func
def claim(c: I, taken: I, i: int):
    taken[i] = wp.atomic_add(c, 0, 1)
    return taken[i]


@wp.func_replay(claim)
def claimed(c: I, taken: I, i: int):
    return taken[i]


@wp.func
def claim_only(c: I):
    return wp.atomic_add(c, 0, 1)


@wp.func
def square(a: float):
    return a * a


@wp.func_grad(square)
def adj_square(a: float, adj_ret: float):
    wp.adjoint[a] = 2.0 * a * adj_ret


@wp.func
def times(a: float, b: float):
    return a * b


@wp.func_grad(times)
def adj_times(a: float, b: float, adj_ret: float):
    wp.adjoint[a] += b * adj_ret


@wp.func
def root(a: float):
    return wp.sqrt(a * a + 1.0)


@wp.func_grad(root)
def adj_root(a: float, adj_ret: float):
    slope = a / wp.sqrt(a * a + 1.0)
    wp.adjoint[a] += slope


@wp.func
def cube(a: float):
    return a * a * a


@wp.func_grad(cube)
def adj_cube(a: float, adj_ret: float):
    scaled = 3.0 * adj_ret
    wp.adjoint[a] += a * a * scaled


@wp.kernel
def k(x: F, p: F, v: V, c: I, taken: I, n: int, y: F, w: V):
    i = wp.tid()
"""


@pytest.fixture
def faults(tmp_path: Path):
    """The faults of a kernel of which the body is given, and the text of the lines they are in."""

    def faults(body: str) -> list[tuple[Fault, str]]:
        text = HEADER + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"
        (tmp_path / "kernels.py").write_text(text, encoding="utf-8")
        (file,) = discover(["kernels.py"], root=tmp_path).files
        interpreter = Interpreter(Project(ImportResolver((file,), tmp_path)), file)
        module = interpreter.import_module(file)
        assert module is not None
        kernel = module.scope.names["k"]
        assert isinstance(kernel, Function)
        summary = interpreter.summary(kernel)
        assert not summary.opaque
        lines = text.splitlines()
        newest = [f for f in summary.faults if concern(f.versions, None)]
        return [(f, lines[f.site.module.location(f.site.node).line - 1].strip()) for f in newest]

    return faults


WRONG = {
    "component assigned twice": (
        "a = wp.vec3()\na[0] = x[i]\na[0] = x[i] * x[i]\ny[i] = a[0]",
        ("component", "a[0] = x[i] * x[i]"),
    ),
    "component computed from itself": (
        "a = wp.vec3(x[i], 1.0, 1.0)\na[0] = a[0] * a[0]\ny[i] = a[0]",
        ("component", "a[0] = a[0] * a[0]"),
    ),
    "component set to a constant": (
        "a = v[i]\na[1] = 0.0\nw[i] = a",
        ("component", "a[1] = 0.0"),
    ),
    "component under a condition": (
        "a = v[i]\nif a[0] > 1.0:\n    a[0] = 1.0\nw[i] = a",
        ("component", "a[0] = 1.0"),
    ),
    "component multiplied": (
        "a = wp.vec3(x[i], 1.0, 1.0)\na[0] *= x[i]\ny[i] = a[0]",
        ("component", "a[0] *= x[i]"),
    ),
    "component by name": (
        "q = wp.quat(x[i], 0.0, 0.0, 1.0)\nq.x = x[i] * x[i]\ny[i] = q[0]",
        ("component", "q.x = x[i] * x[i]"),
    ),
    "components in an unrolled loop": (
        "a = wp.vec3(x[i], x[i], x[i])\nfor j in range(3):\n    a[j] = a[j] * x[i]\ny[i] = a[0]",
        ("component", "a[j] = a[j] * x[i]"),
    ),
    "matrix element": (
        "m = wp.mat22()\nm[0, 1] = x[i]\nm[0, 1] = x[i] * m[0, 1]\ny[i] = m[0, 1]",
        ("component", "m[0, 1] = x[i] * m[0, 1]"),
    ),
    "matrix row": (
        "m = wp.mat22(x[i], x[i], x[i], x[i])\nm[0] = wp.vec2(x[i] * x[i], 1.0)\ny[i] = m[0, 0]",
        ("component", "m[0] = wp.vec2(x[i] * x[i], 1.0)"),
    ),
    "slice": (
        "a = wp.vec3(x[i], x[i], 2.0)\na[0:2] = wp.vec2(x[i] * x[i], 1.0)\ny[i] = a[0]",
        ("component", "a[0:2] = wp.vec2(x[i] * x[i], 1.0)"),
    ),
    "part of a transform": (
        "t = wp.transform(v[i], wp.quat_identity())\nt.p = 2.0 * v[i]\n"
        "w[i] = wp.transform_get_translation(t)",
        ("component", "t.p = 2.0 * v[i]"),
    ),
    "component of a field": (
        "s = Body()\ns.v[1] = x[i] * x[i]\ny[i] = s.v[1]",
        ("struct component", "s.v[1] = x[i] * x[i]"),
    ),
    "named component of a field": (
        "s = Body()\ns.v.x = x[i]\ny[i] = s.v[0]",
        ("struct component", "s.v.x = x[i]"),
    ),
    "component of an array element from itself": (
        "w[i][0] = x[i]\nw[i][0] = w[i][0] * w[i][0]",
        ("update", "w[i][0] = w[i][0] * w[i][0]"),
    ),
    "product in a loop": (
        "a = float(1.0)\nfor j in range(n):\n    a *= x[j]\ny[i] = a",
        ("loop", "a *= x[j]"),
    ),
    "nonlinear recurrence": (
        "a = float(0.5)\nfor j in range(n):\n    a = wp.sin(a) + x[j]\ny[i] = a",
        ("loop", "a = wp.sin(a) + x[j]"),
    ),
    "sum squared after its loop": (
        "a = float(0.0)\nfor j in range(n):\n    a += x[j]\nb = 2.0 * a\ny[i] = b * b",
        ("loop", "y[i] = b * b"),
    ),
    "sum squared inside its loop": (
        "a = float(0.0)\nfor j in range(n):\n    a += x[j]\n    y[j] = a * a",
        ("loop", "y[j] = a * a"),
    ),
    "vector sum of a loop": (
        "a = wp.vec3()\nfor j in range(n):\n    a[0] += x[j]\ny[i] = wp.dot(a, a)",
        ("loop", "y[i] = wp.dot(a, a)"),
    ),
    "last value, squared": (
        "a = float(0.0)\nfor j in range(n):\n    a = x[j]\ny[i] = a * a",
        ("loop", "y[i] = a * a"),
    ),
    "divided by in the function": (
        "y[i] = inverse_total(x, n)",
        ("loop", "return 1.0 / s"),
    ),
    "running maximum": (
        "a = float(-1.0)\nfor j in range(n):\n    a = wp.max(a, x[j])\ny[i] = a",
        ("loop", "a = wp.max(a, x[j])"),
    ),
    "more turns than are unrolled": (
        "a = float(1.0)\nfor j in range(17):\n    a *= x[j]\ny[i] = a",
        ("loop", "a *= x[j]"),
    ),
    "bound that is an expression": (
        "a = float(1.0)\nfor j in range(1 * 3):\n    a *= x[j]\ny[i] = a",
        ("loop", "a *= x[j]"),
    ),
    "weight moved on after its use": (
        "a = float(0.0)\nu = float(1.0)\nfor j in range(n):\n    a += u * x[0]\n    u = 0.5 * u\ny[i] = a",
        ("loop", "a += u * x[0]"),
    ),
    "weight and element of one turn": (
        "a = float(0.0)\nu = float(1.0)\nfor j in range(n):\n    u = 0.5 * u\n    a += u * x[j]\ny[i] = a",
        ("loop", "a += u * x[j]"),
    ),
    "weight that carries a derivative": (
        "a = float(0.0)\nu = float(1.0)\nb = x[0]\nfor j in range(n):\n    u = u * b\n    a += u\ny[i] = a",
        ("loop", "u = u * b"),
    ),
    "counter of a while": (
        "a = float(0.0)\nj = int(0)\nwhile j < n:\n    a += x[j] * x[j]\n    j += 1\ny[i] = a",
        ("loop", "a += x[j] * x[j]"),
    ),
    "break": (
        "a = float(0.0)\nfor j in range(n):\n    if x[j] > 1.5:\n        break\n    a += x[j]\ny[i] = a",
        ("break", "break"),
    ),
    "softplus": (
        "y[i] = wp.where(x[i] > 20.0, x[i], wp.log(1.0 + wp.exp(x[i])))",
        ("where", "y[i] = wp.where(x[i] > 20.0, x[i], wp.log(1.0 + wp.exp(x[i])))"),
    ),
    "guarded root": (
        "r = wp.sqrt(x[i])\ny[i] = wp.where(x[i] > 0.0, r, 0.0)",
        ("where", "y[i] = wp.where(x[i] > 0.0, r, 0.0)"),
    ),
    "guarded quotient": (
        "y[i] = wp.where(x[i] == 0.0, 1.0, wp.sin(x[i]) / x[i])",
        ("where", "y[i] = wp.where(x[i] == 0.0, 1.0, wp.sin(x[i]) / x[i])"),
    ),
    "root of a square": (
        "r = wp.sqrt(wp.dot(v[i], v[i]))\ny[i] = r * x[i]",
        ("singular", "r = wp.sqrt(wp.dot(v[i], v[i]))"),
    ),
    "half power": ("y[i] = x[i] ** 0.5", ("singular", "y[i] = x[i] ** 0.5")),
    "adjoint that assigns": (
        "a = x[i]\ny[i] = square(a) + 3.0 * a",
        ("adjoint assigns", "wp.adjoint[a] = 2.0 * a * adj_ret"),
    ),
    "adjoint that leaves an argument out": (
        "y[i] = times(x[i], p[i])",
        ("adjoint misses", "def adj_times(a: float, b: float, adj_ret: float):"),
    ),
    "adjoint that ignores the incoming one": (
        "y[i] = root(x[i])",
        ("adjoint ignores", "wp.adjoint[a] += slope"),
    ),
    "claimed index": (
        "j = wp.atomic_add(c, 0, 1)\ny[j] = x[i]",
        ("claimed", "j = wp.atomic_add(c, 0, 1)"),
    ),
    "index claimed in a function": (
        "j = claim_only(c)\ny[i] = x[j]",
        ("claimed", "return wp.atomic_add(c, 0, 1)"),
    ),
    "stencil in place": (
        "if i > 0:\n    x[i] = 0.5 * (x[i - 1] + x[i + 1])",
        ("neighbour", "x[i] = 0.5 * (x[i - 1] + x[i + 1])"),
    ),
    "sum over the threads, read by each": (
        "wp.atomic_add(p, 0, x[i])\ny[i] = p[0] * p[0]",
        ("neighbour", "wp.atomic_add(p, 0, x[i])"),
    ),
    "racing store": ("y[0] = x[i]", ("race", "y[0] = x[i]")),
    "racing store behind a bounds check": (
        "if i >= n:\n    return\ny[0] = x[i]",
        ("race", "y[0] = x[i]"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_fault(name, faults):
    body, expected = WRONG[name]
    assert {(fault.kind.value, line) for fault, line in faults(body)} == {expected}


RIGHT = {
    "first assignment": "a = wp.vec3()\na[0] = x[i] * x[i]\na[1] = x[i]\ny[i] = wp.dot(a, a)",
    "another component": "a = wp.vec3(x[i], 1.0, 2.0)\na[1] = x[i] * x[i]\ny[i] = wp.dot(a, a)",
    "component added to": "a = wp.vec3(x[i], 1.0, 2.0)\na[0] += x[i]\na[1] -= x[i]\ny[i] = wp.dot(a, a)",
    "constant component multiplied": "a = wp.vec3(3.0, 1.0, 2.0)\na[0] *= x[i]\ny[i] = a[0]",
    "whole vector again": "a = v[i]\na = 2.0 * a\na *= x[i]\nw[i] = a",
    "each component in its turn": "a = wp.vec3()\nfor j in range(3):\n    a[j] = x[j] * x[j]\ny[i] = a[0]",
    "component of an array element": "w[i][0] = x[i]\nw[i][1] = x[i] * x[i]",
    "whole field": "s = Body()\ns.v = x[i] * v[i]\ns.m = x[i]\ny[i] = s.v[0] * s.m",
    "field of a struct inside": "s = Pair()\ns.inner.m = x[i] * x[i]\ny[i] = s.inner.m",
    "local scalar in place": "a = x[i]\na *= a\na = a / 2.0\ny[i] = a",
    "local limit": "a = x[i]\nif a > 1.0:\n    a = 1.0\ny[i] = a * a",
    "sum": "a = float(0.0)\nfor j in range(n):\n    a += x[j] * x[j]\ny[i] = 3.0 * a",
    "linear recurrence": "a = float(0.0)\nfor j in range(n):\n    a = 0.5 * a + x[j] * x[j]\ny[i] = a",
    "turns that differ in a weight alone": (
        "a = float(0.0)\nu = float(1.0)\nfor j in range(n):\n    u = 0.5 * u\n    b = wp.sin(u * x[0])\n"
        "    a += u * b * b\ny[i] = a"
    ),
    "sum per turn": "a = float(0.0)\nfor j in range(n):\n    a += x[j]\n    y[j] = a",
    "value of one turn": "for j in range(n):\n    a = x[j]\n    y[j] = a * a",
    "last value": "a = float(0.0)\nfor j in range(n):\n    a = x[j] * x[j]\ny[i] = a",
    "continue": (
        "a = float(0.0)\nfor j in range(n):\n    if x[j] < 1.0:\n        continue\n    a += x[j]\ny[i] = a"
    ),
    "sum from a function": "a = total(x, n)\ny[i] = 1.0 / (1.0 + a)",
    "sixteen turns": "a = float(1.0)\nfor j in range(16):\n    a *= x[j]\ny[i] = a",
    "length of a vector": "a = float(1.0)\nfor j in range(len(v[i])):\n    a *= v[i][j]\ny[i] = a",
    "kept in an array": "for j in range(n):\n    y[j + 1] = y[j] * x[j]",
    "softplus with a branch": "a = x[i]\nif a <= 20.0:\n    a = wp.log(1.0 + wp.exp(a))\ny[i] = a",
    "softplus as an expression": "y[i] = x[i] if x[i] > 20.0 else wp.log(1.0 + wp.exp(x[i]))",
    "exponential that cannot overflow": "y[i] = wp.where(x[i] > 0.0, 1.0, wp.exp(-wp.abs(x[i])))",
    "smooth length": "y[i] = wp.sqrt(x[i] * x[i] + 1.0e-6)",
    "scaled square": "y[i] = wp.sqrt(1.0 + 0.4 * x[i] * x[i])",
    "lower limit": "y[i] = wp.sqrt(wp.max(x[i], 1.0e-6))",
    "length": "y[i] = wp.length(v[i]) + wp.length_sq(v[i])",
    "normalized": "w[i] = wp.normalize(v[i])",
    "angle": "y[i] = wp.acos(x[i]) + wp.atan2(x[i], p[i])",
    "root behind a test": "a = float(0.0)\nif x[i] > 0.0:\n    a = wp.sqrt(x[i])\ny[i] = a",
    "root after a test": "if x[i] <= 0.0:\n    return\ny[i] = wp.sqrt(x[i])",
    "root of an exponential": "y[i] = wp.sqrt(wp.exp(x[i]))",
    "logarithm, infinite in the forward pass, too": "y[i] = wp.log(x[i]) + p[i] / x[i]",
    "square": "y[i] = wp.pow(x[i], 2.0) + x[i] ** 2.0",
    "adjoint that assigns for one use": "y[i] = square(x[i])",
    "adjoint of a constant": "y[i] = x[i] + times(2.0, 3.0)",
    "adjoint that scales": "y[i] = cube(x[i])",
    "claimed and stored": "y[claim(c, taken, i)] = x[i]",
    "counted": "wp.atomic_add(c, 0, 1)\ny[i] = x[i]",
    "stencil to another array": "y[i] = 0.5 * (x[i - 1] + x[i + 1])",
    "pairs": "x[2 * i] = x[2 * i + 1] + x[2 * i]",
    "halves of one array": "x[i] = x[i + n]",
    "read before it is added to": "y[i] = x[i] * p[0]\nwp.atomic_add(p, 0, 1.0)",
    "one thread": "if i == 0:\n    y[0] = x[0]",
    "a constant from all threads": "y[0] = 1.0",
    "one value from all threads": "y[0] = x[0]",
    "accumulated by all threads": "y[0] += x[i]\nwp.atomic_add(y, 1, x[i])",
}


@pytest.mark.parametrize("name", RIGHT)
def test_look_alike(name, faults):
    assert faults(RIGHT[name]) == []


def test_a_fault_names_what_carries_the_derivative(faults):
    ((fault, _),) = faults("a = wp.vec3(x[i], 1.0, 1.0)\na[0] = p[i]\ny[i] = a[0]")
    assert fault.given == {"x"}
    assert fault.output == "y"


def test_faults_keep_the_order_of_the_body(faults):
    found = faults("a = v[i]\na[2] = 0.0\na[0] = 1.0\na[1] = 2.0\nw[i] = a")
    assert [line for _, line in found] == ["a[2] = 0.0", "a[0] = 1.0", "a[1] = 2.0"]
