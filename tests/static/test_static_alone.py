"""Kernels that no program loads: found at the top of a file and inside functions that define them."""

from __future__ import annotations

from warplint.source.discovery import discover
from warplint.static import analyze

FACTORIES = """
import warp as wp


def make_product(order: int, dtype=float):
    @wp.kernel(module="unique")
    def product(x: wp.array(dtype=dtype), n: int, y: wp.array(dtype=dtype)):
        i = wp.tid()
        p = dtype(order)
        for k in range(n):
            p = p * x[i + k]
        y[i] = p

    return product


def make_all(functions):
    made = {}
    for name, function in functions.items():
        made[name] = make_one(function)
    return made


def make_one(function):
    def inner():
        @wp.kernel(enable_backward=False)
        def forward_only(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
            p = float(1.0)
            for k in range(n):
                p = p * function(x[k])
            y[0] = p

        return forward_only

    @wp.kernel
    def twice(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        v = x[i]
        v[0] = v[0] * v[0]
        y[i] = v

    return inner(), twice


def plain(x):
    return x + undefined
"""


def test_factories_are_called_for_their_kernels(tmp_path):
    (tmp_path / "factories.py").write_text(FACTORIES, encoding="utf-8")
    files = discover([tmp_path], root=tmp_path).files
    found = analyze(files, (), root=tmp_path, alone=True)
    assert not found.internal_errors
    assert found.findings == ()
    lines = FACTORIES.splitlines()
    assert [(f.rule, f.request.kernel, lines[f.location.line - 1].strip()) for f in found.alone] == [
        ("WL303", "product", "p = p * x[i + k]"),
        ("WL302", "twice", "v[0] = v[0] * v[0]"),
    ]
