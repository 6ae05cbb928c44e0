"""Which in-place updates spoil a kernel's own adjoint: the forms, as measured on Warp 1.19."""

from __future__ import annotations

import pytest

WRONG = {
    "square": "a[i] = a[i] * a[i]",
    "times itself": "a[i] *= a[i]",
    "saturated": "a[i] = wp.tanh(a[i])",
    "divided by its own length": "a[i] = a[i] / wp.sqrt(1.0 + a[i] * a[i])",
    "accumulated from itself": "a[i] += wp.sin(a[i])",
    "clamp with >": "if a[i] > c:\n        a[i] = c",
    "clamp through a local": "v = a[i]\n    if v > c:\n        v = c\n    a[i] = v",
    "where with >": "a[i] = wp.where(a[i] > c, c, a[i])",
    "reflected": "if a[i] >= c:\n        a[i] = 2.0 * c - a[i]",
    "another bound than the one tested": "if a[i] >= c:\n        a[i] = 0.0",
    "min with the bound first": "a[i] = wp.min(c, a[i])",
    "clamp()": "a[i] = wp.clamp(a[i], 0.0, c)",
    "absolute value": "a[i] = wp.abs(a[i])",
}

RIGHT = {
    "scaled": "a[i] = 0.5 * a[i]",
    "scaled in place": "a[i] *= c",
    "moved": "a[i] = a[i] + c",
    "negated": "a[i] = -a[i]",
    "set": "a[i] = c",
    "min": "a[i] = wp.min(a[i], c)",
    "max": "a[i] = wp.max(a[i], c)",
    "clamp with >=": "if a[i] >= c:\n        a[i] = c",
    "clamp with the bound on the left": "if c <= a[i]:\n        a[i] = c",
    "clamp through a local with >=": "v = a[i]\n    if v >= c:\n        v = c\n    a[i] = v",
    "where with >=": "a[i] = wp.where(a[i] >= c, c, a[i])",
    "ternary with >=": "a[i] = c if a[i] >= c else a[i]",
    "read after it was written": "a[i] = c\n    a[i + 3] = a[i] * a[i]",
}

PROGRAM = """
@wp.kernel
def update(a: wp.array(dtype=float), c: float):
    i = wp.tid()
    {body}

x, a, loss = grad(), grad(6), grad(1)
with wp.Tape() as tape:
    wp.launch(scale, 3, [x, 2.0], [a])
    wp.launch(update, 3, [a, 1.0])
    wp.launch(total, 6, [a], [loss])
tape.backward(loss)
"""


@pytest.mark.parametrize("name", WRONG)
def test_found(name, findings):
    (finding,) = findings(PROGRAM.format(body=WRONG[name]))
    assert finding.rule == "WL108"
    assert finding.request.kernel == "update"
    assert finding.request.kernel_file == "program.py"


@pytest.mark.parametrize("name", RIGHT)
def test_silent(name, findings):
    assert findings(PROGRAM.format(body=RIGHT[name])) == []


def test_one_finding_for_a_kernel_that_updates_two_arrays(findings):
    found = findings(
        """
    @wp.kernel
    def swing(x: wp.array(dtype=float), v: wp.array(dtype=float)):
        i = wp.tid()
        v[i] = v[i] - 0.1 * wp.sin(x[i])
        x[i] = x[i] + 0.1 * v[i]

    x, v, loss = grad(), grad(), grad(1)
    with wp.Tape() as tape:
        for _ in range(4):
            wp.launch(swing, 3, [x, v])
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss)
    """.replace("\n    ", "\n")
    )
    assert [f.rule for f in found] == ["WL108"]
    assert [s.line for s in found[0].request.sites] == [found[0].related[0].location.line]
