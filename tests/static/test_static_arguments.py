"""A tape holds the objects that a launch was given: changing them before backward changes the launch."""

from __future__ import annotations

import pytest

STRUCT = """
@wp.struct
class Data:
    a: wp.array(dtype=float)
    b: wp.array(dtype=float)
    t: float


@wp.kernel
def weigh(d: Data, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = d.a[i] * x[i]


x, loss = grad(), grad(1)
weights = [grad() for _ in range(4)]
"""
TAIL = "tape.backward(loss)\n"
FOUND = {
    "a field rebound for the next launch": """
d = Data()
with wp.Tape() as tape:
    for w in weights:
        y = grad()
        d.a = w  # here
        wp.launch(weigh, 3, [d, x, y])
        wp.launch(total, 3, [y], [loss])
""",
    "a field rebound after the block": """
d, y = Data(), grad()
d.a = weights[0]
with wp.Tape() as tape:
    wp.launch(weigh, 3, [d, x, y])
    wp.launch(total, 3, [y], [loss])
d.a = weights[1]  # here
""",
    "one list of arguments for all launches": """
arguments = [x, x]
with wp.Tape() as tape:
    for w in weights:
        arguments[1] = grad()  # here
        wp.launch(square, 3, inputs=arguments)
        wp.launch(total, 3, [arguments[1]], [loss])
""",
}
SILENT = {
    "a struct for each launch": """
with wp.Tape() as tape:
    for w in weights:
        d, y = Data(), grad()
        d.a = w
        wp.launch(weigh, 3, [d, x, y])
        wp.launch(total, 3, [y], [loss])
""",
    "rebound after backward": """
d = Data()
for w in weights:
    y = grad()
    d.a = w
    with wp.Tape() as tape:
        wp.launch(weigh, 3, [d, x, y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    tape.zero()
d.a = x
with wp.Tape() as tape:
    wp.launch(total, 3, [x], [loss])
""",
    "a field that the kernel does not read, and one set to itself": """
d = Data()
d.a = weights[0]
with wp.Tape() as tape:
    for w in weights:
        y = grad()
        d.b = w
        d.a = weights[0]
        wp.launch(weigh, 3, [d, x, y])
        wp.launch(total, 3, [y], [loss])
""",
    "a list of arguments built anew": """
with wp.Tape() as tape:
    for w in weights:
        arguments = [x, x]
        arguments[1] = grad()
        wp.launch(square, 3, inputs=arguments)
        wp.launch(total, 3, [arguments[1]], [loss])
""",
    "a list that was unpacked": """
arguments = [x, x]
with wp.Tape() as tape:
    for w in weights:
        arguments[1] = grad()
        wp.launch(square, 3, inputs=[*arguments])
        wp.launch(total, 3, [arguments[1]], [loss])
""",
    "a launch that carries no derivative": """
d = Data()
plain = wp.zeros(3, dtype=float)
with wp.Tape() as tape:
    for w in weights:
        d.a = wp.zeros(3, dtype=float)
        wp.launch(weigh, 3, [d, plain, plain])
    wp.launch(total, 3, [x], [loss])
""",
}


@pytest.mark.parametrize("name", FOUND)
def test_found(name, findings):
    from static_prelude import PRELUDE

    text = PRELUDE + STRUCT + FOUND[name] + TAIL
    line = text.partition("# here")[0].count("\n") + 1
    found = [(f.rule, f.location.line) for f in findings(STRUCT + FOUND[name] + TAIL)]
    assert found == [("WL106", line)]


@pytest.mark.parametrize("name", SILENT)
def test_silent(name, findings):
    assert findings(STRUCT + SILENT[name] + TAIL) == []
