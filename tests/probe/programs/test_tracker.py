"""Warp's own overwrite tracker as evidence: its warnings, each once."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, run, write

from warplint.probe.runtime.tracker import warnings

SAID = """\
Warp UserWarning: Array [[1. 2.]
 [3. 4.]] passed to argument out in kernel grow at /project/sim.py:12 is being written to but has \
already been read from in a previous launch. This may corrupt gradient computation in the backward pass.
Warning: Array [1.] passed to argument out in kernel grow at /project/sim.py:12 is being written to but has \
already been read from in a previous launch. This may corrupt gradient computation in the backward pass.
Warp UserWarning: Array [1.] is being written to by copy at /project/fit.py:30 but has already been read \
from in a previous launch. This may corrupt gradient computation in the backward pass.
"""


def test_warnings_are_told_once_with_their_number() -> None:
    found = warnings(SAID, lambda path: path.removeprefix("/project/"))
    assert [
        (w["kernel"], w["argument"], w["operation"], w["file"], w["line"], w["count"]) for w in found
    ] == [
        (None, None, "copy", "fit.py", 30, 1),
        ("grow", "out", None, "sim.py", 12, 2),
    ]


PING_PONG = """
x, rate = array([0.5, 1.0, 1.5]), array([0.3])
a, b = zeros(3), zeros(3)
for it in range(2):
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.launch(grow, 3, [x, rate], [a])
        for _ in range(4):
            wp.launch(grow, 3, [a, rate], [b])
            a, b = b, a
        wp.launch(misfit, 3, [a, 2.0], [loss])
    tape.backward(loss)
    rate.assign(rate.numpy() - 0.01 * rate.grad.numpy())
    tape.zero()
"""


@pytest.mark.probe
def test_the_tracker_warns_about_buffers_that_take_turns(tmp_path: Path) -> None:
    told = run(write(tmp_path, PING_PONG), tracker=True)
    (message,) = told.of("tracker")
    kernel_line = next(n for n, line in enumerate(KERNELS.splitlines(), 1) if "def grow" in line)
    assert message["problem"] is None
    (warning,) = message["warnings"]
    assert (warning["kernel"], warning["argument"], warning["file"]) == ("grow", "out", "program.py")
    assert abs(warning["line"] - kernel_line) <= 1
