"""Effect summaries: what a kernel body says about its arguments."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from warplint.source import discover
from warplint.source.imports import ImportResolver
from warplint.static.host.core import Project
from warplint.static.host.library import Interpreter
from warplint.static.host.values import Function
from warplint.static.kernels import AccessKind, IndexClass, KernelSummary

HEADER = "import warp as wp\n\nF = wp.array(dtype=float)\n\n"


@pytest.fixture
def summary(tmp_path: Path):
    """The summary of the kernel ``k`` of a module given as text."""

    def summary(source: str, name: str = "k") -> KernelSummary:
        (tmp_path / "kernels.py").write_text(HEADER + textwrap.dedent(source), encoding="utf-8")
        (file,) = discover(["kernels.py"], root=tmp_path).files
        interpreter = Interpreter(Project(ImportResolver((file,), tmp_path)), file)
        module = interpreter.import_module(file)
        assert module is not None
        kernel = module.scope.names[name]
        assert isinstance(kernel, Function)
        return interpreter.summary(kernel)

    return summary


def needs(found: KernelSummary) -> dict[str, set[str]]:
    """For each path whose value is needed, the paths that must be active for it."""
    table: dict[str, set[str]] = {}
    for need in found.needs:
        table.setdefault(need.read.path, set()).update(need.given)
    return table


def kinds(found: KernelSummary, path: str) -> set[AccessKind]:
    return {a.kind for a in found.writes_of(path)}


LINEAR = {
    "copy": "y[i] = x[i]",
    "constant factor": "y[i] = 2.0 * x[i]",
    "scalar argument": "y[i] = x[i] * s - x[i] / s",
    "sum": "y[i] = x[i] + p[i]",
    "accumulation": "y[i] += x[i]",
    "atomic": "wp.atomic_sub(y, i, x[i])",
    "guarded by the thread index": "if i > 0:\n            y[i] = x[i]",
    "early return of the bounds check": "if i >= n:\n            return\n        y[i] = x[i]",
    "vector constructor": "v = wp.vec3(x[i], x[i], 0.0)\n        y[i] = v[0] + v[1]",
    "loop sum": "a = float(0.0)\n        for j in range(n):\n            a += x[j]\n        y[i] = a",
    "integer part": "y[i] = p[i] + wp.floor(x[i])",
}


@pytest.mark.parametrize("name", LINEAR)
def test_values_that_are_not_needed(name, summary):
    found = summary(f"""
    @wp.kernel
    def k(x: F, p: F, s: float, n: int, y: F):
        i = wp.tid()
        {LINEAR[name]}
    """)
    assert needs(found) == {}


NONLINEAR = {
    "square": ("y[i] = x[i] * x[i]", {"x"}),
    "sine": ("y[i] = wp.sin(x[i])", {"x"}),
    "through a local": ("a = x[i]\n        b = a + 1.0\n        y[i] = b * b", {"x"}),
    "power": ("y[i] = x[i] ** 3.0", {"x"}),
    "divisor": ("y[i] = 1.0 / x[i]", {"x"}),
    "branch": ("if x[i] > 0.0:\n            y[i] = p[i]", {"p", "y"}),
    "ternary": ("y[i] = p[i] if x[i] > 0.0 else 0.0", {"p"}),
    "where": ("y[i] = wp.where(x[i] > 0.0, p[i], 0.0)", {"p"}),
    "minimum": ("y[i] = wp.min(x[i], s)", {"x"}),
    "length": ("v = wp.vec2(x[i], p[i])\n        y[i] = wp.length(v)", {"x", "p"}),
    "early return": ("if x[i] < 0.0:\n            return\n        y[i] = p[i]", {"p", "y"}),
    "loop product": (
        "a = float(1.0)\n        for j in range(n):\n            a = a * x[j]\n        y[i] = a",
        {"x"},
    ),
    "augmented local": ("a = p[i]\n        a *= x[i]\n        y[i] = a", {"p"}),
}


@pytest.mark.parametrize("name", NONLINEAR)
def test_values_that_are_needed(name, summary):
    statement, given = NONLINEAR[name]
    found = summary(f"""
    @wp.kernel
    def k(x: F, p: F, s: float, n: int, y: F):
        i = wp.tid()
        {statement}
    """)
    assert needs(found)["x"] == given


def test_a_product_needs_each_side_for_the_other(summary):
    found = summary("""
    @wp.kernel
    def k(x: F, p: F, y: F):
        i = wp.tid()
        y[i] = x[i] * p[i]
    """)
    assert needs(found) == {"x": {"p"}, "p": {"x"}}


def test_an_index_read_from_memory_is_needed(summary):
    found = summary("""
    @wp.kernel
    def k(x: F, table: wp.array(dtype=int), y: F):
        i = wp.tid()
        y[i] = x[table[i]]
    """)
    assert needs(found) == {"table": {"x"}}
    assert found.reads_of("x")[0].index_class is IndexClass.DATA


def test_effects_through_functions(summary):
    found = summary("""
    @wp.func
    def inner(a: F, i: int, v: float):
        a[i] = v * v

    @wp.func
    def outer(a: F, i: int, v: float):
        inner(a, i, v)
        return v + 1.0

    @wp.kernel
    def k(x: F, y: F, z: F):
        i = wp.tid()
        z[i] = outer(y, i, x[i])
    """)
    assert kinds(found, "y") == {AccessKind.STORE}
    assert {(n.read.path, n.output) for n in found.needs} == {("x", "y")}
    assert found.flows == {"y": frozenset({"x"}), "z": frozenset({"x"})}


def test_struct_fields_are_paths(summary):
    found = summary("""
    @wp.struct
    class State:
        q: wp.array(dtype=wp.vec3)
        m: float

    @wp.kernel
    def k(before: State, after: State):
        i = wp.tid()
        after.q[i] = before.q[i] * before.m
    """)
    assert found.paths == ("after.q", "before.q")
    assert needs(found) == {}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("i", IndexClass.THREAD),
        ("i + 1", IndexClass.NEIGHBOUR),
        ("0", IndexClass.CONSTANT),
        ("t * n + i", IndexClass.OFFSET),
        ("(i + 1) % n", IndexClass.UNKNOWN),
    ],
)
def test_index_classes(index, expected, summary):
    found = summary(f"""
    @wp.kernel
    def k(x: F, t: int, n: int, y: F):
        i = wp.tid()
        y[i] = x[{index}]
    """)
    assert found.reads_of("x")[0].index_class is expected


@pytest.mark.parametrize(
    "statement",
    [
        "x[i] *= b[i]",
        "x[i] /= b[i]",
        "x[i] = x[i] * b[i]",
        "x[i] = b[i] * x[i]",
        "a = x[i]\n        a *= b[i]\n        x[i] = a",
        "x[i] = x[i] * (1.0 - b[i] * s)",
        "x[i] = x[i] / (1.0 + b[i])",
    ],
)
def test_in_place_products(statement, summary):
    found = summary(f"""
    @wp.kernel
    def k(x: F, b: F, s: float):
        i = wp.tid()
        {statement}
    """)
    (item,) = found.multiplies
    assert item.path == "x"
    assert item.factors == {"b"}


@pytest.mark.parametrize(
    "statement", ["x[i] *= s", "x[i] = x[i] * 0.5", "x[i] += b[i]", "x[i] = x[i] + b[i]"]
)
def test_no_in_place_product(statement, summary):
    found = summary(f"""
    @wp.kernel
    def k(x: F, b: F, s: float):
        i = wp.tid()
        {statement}
    """)
    assert found.multiplies == ()


def test_kernel_of_a_factory_sees_its_closure(summary):
    found = summary("""
    def make(activation, nonlinear):
        @wp.kernel(module="unique")
        def kernel(x: F, y: F):
            i = wp.tid()
            if wp.static(nonlinear):
                y[i] = activation(x[i])
            else:
                y[i] = x[i]

        return kernel

    @wp.func
    def swish(v: float):
        return v * v

    k = make(swish, True)
    linear = make(swish, False)
    """)
    assert needs(found) == {"x": {"x"}}


def test_tiles(summary):
    found = summary("""
    @wp.kernel
    def k(a: wp.array2d(dtype=float), w: F, loss: F):
        r = wp.tid()
        row = wp.tile_load(a[r], shape=8)
        p = wp.tile_load(w, shape=8)
        wp.tile_atomic_add(loss, wp.tile_sum(row * p))
    """)
    assert needs(found) == {"a": {"w"}, "w": {"a"}}
    assert kinds(found, "loss") == {AccessKind.ACCUMULATE}


def test_custom_gradient_needs_its_arguments(summary):
    found = summary("""
    @wp.func
    def f(v: float):
        return v

    @wp.func_grad(f)
    def adj_f(v: float, adj_ret: float):
        wp.adjoint[v] += adj_ret * v

    @wp.kernel
    def k(x: F, y: F):
        i = wp.tid()
        y[i] = f(x[i])
    """)
    assert needs(found) == {"x": {"x"}}
