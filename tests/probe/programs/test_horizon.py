"""A program too long to measure is shortened where its own source says how long it is."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from probe_programs import run, write

from warplint.probe.runtime import horizon

SOURCES = {
    "a literal in range": ("for t in range(200):", {"range": (200, 10)}),
    "a constant": ("STEPS = 200\nfor t in range(STEPS):", {"STEPS": (200, 10)}),
    "an attribute": (
        "class Sim:\n    def __init__(self):\n        self.steps = 200\nfor t in range(Sim().steps):",
        {"steps": (200, 10)},
    ),
    "an option of the command line": (
        "parser.add_argument('--num-steps', type=int, default=200)\n"
        "args = parser.parse_args()\nfor t in range(args.num_steps):",
        {"num_steps": (200, 10)},
    ),
    "a default": ("def simulate(steps=200):\n    pass\nfor t in range(steps):", {"steps": (200, 10)}),
    "frames times substeps: the larger one first": (
        "FRAMES = 100\nSUBSTEPS = 4\nTOTAL = FRAMES * SUBSTEPS\nfor t in range(TOTAL):",
        {"FRAMES": (100, 5)},
    ),
    "what one number cannot give, the next one does": (
        "FRAMES = 24\nSUBSTEPS = 30\nfor t in range(FRAMES * SUBSTEPS):",
        {"SUBSTEPS": (30, 3), "FRAMES": (24, 12)},
    ),
    "a duration over a step": (
        "DURATION = 2.0\nDT = 0.01\nfor t in range(int(DURATION / DT)):",
        {"DURATION": (2.0, 0.1)},
    ),
    "few turns are left alone": ("for t in range(6):", {}),
}


def shortened(text: str, factor: float) -> dict[str, tuple[float, float]]:
    program = text + "\n    step(t)\nloss()\nbackward()\n"
    lines = program.splitlines()
    taped = {("sim.py", lines.index("    step(t)") + 1)}
    back = {("sim.py", len(lines))}
    return {n.name: (n.value, n.shorter) for n in horizon.shorten({"sim.py": program}, taped, back, factor)}


@pytest.mark.parametrize("form", SOURCES)
def test_the_numbers_that_bound_taped_loops(form: str) -> None:
    text, expected = SOURCES[form]
    assert shortened(text, 20.0) == expected


def test_the_training_loop_is_left_alone() -> None:
    program = textwrap.dedent("""\
        for it in range(500):
            for t in range(100):
                step(t)
            backward()
        """)
    found = horizon.shorten({"sim.py": program}, {("sim.py", 3)}, {("sim.py", 4)}, 10.0)
    assert [(n.line, n.shorter) for n in found] == [(2, 10.0)]


LONG = """
import time
STEPS = 240
rate, target = array([0.3]), 2.0
for it in range(2):
    x, loss = [zeros(2) for _ in range(STEPS + 1)], zeros(1)
    with wp.Tape() as tape:
        for t in range(STEPS):
            time.sleep(0.01)
            wp.launch(grow, 2, [x[t], rate], [x[t + 1]])
        wp.launch(square, 1, [rate, 0.5], [x[STEPS]])
        wp.launch(misfit, 2, [x[STEPS], target], [loss])
    tape.backward(loss)
    rate.assign(rate.numpy() - 0.01 * rate.grad.numpy())
    tape.zero()
"""


@pytest.mark.probe
def test_a_long_program_is_measured_on_a_shorter_horizon(tmp_path: Path) -> None:
    told = run(write(tmp_path, LONG), seconds=30)
    assert told.outcomes["rate"][-1] == "agrees"
    (number,) = told.of("measured")[0]["shortened"]
    assert number["name"] == "STEPS" and 3 <= number["shorter"] < 240
    assert told.of("finished")[0]["substitutions"] == [
        f"STEPS = {number['shorter']:g} instead of 240 (program.py:{number['line']})"
    ]
