"""One report with every verdict in it, and the sources that it points into."""

from __future__ import annotations

import pytest

from warplint.model import (
    Check,
    Evidence,
    Location,
    ProgramRow,
    ProgramStatus,
    Related,
    Removal,
    Report,
    Result,
    Verdict,
)
from warplint.report import Context
from warplint.rulebook import load_rules

SOURCES = {
    "train.py": """import warp as wp

from sim import eval_forces, integrate


def train(states, loss):
    for it in range(10):
        tape = wp.Tape()
        with tape:
            for s in range(20):
                wp.launch(eval_forces, dim=8, inputs=[states[0].q], outputs=[states[0].f])
                wp.launch(integrate, dim=8, inputs=[states[0].q, states[0].f], outputs=[states[1].q])
                states[0], states[1] = states[1], states[0]
        tape.backward(loss)
\tloss.zero_()  # a tab, as in old code
""",
    "sim.py": """import warp as wp


@wp.kernel
def eval_forces(q: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    f[i] = -wp.sin(q[i])
""",
}


def check(direction: str, ad: float, fd: float, outcome: str, iteration: int = 1) -> Check:
    error = abs(ad - fd) / max(abs(fd), 1e-12)
    return Check(direction, ad, fd, 0.004, error, outcome, step=1e-3, iteration=iteration)


CONFIRMED = Result(
    rule="WL103",
    name="ping-pong-buffers",
    verdict=Verdict.CONFIRMED,
    message=(
        "`states[0]` and `states[1]` take turns for 20 steps on one tape: integrate overwrites `states[1].q`,"
        " which eval_forces read two steps before"
    ),
    location=Location("train.py", 12, 17, 12, 100),
    related=(
        Related(Location("train.py", 11, 17, 11, 86), "read here, by kernel eval_forces"),
        Related(Location("sim.py", 7, 20, 7, 24), "value of q[i] read here, needed again"),
        Related(Location("train.py", 14, 9, 14, 28), "backward runs here"),
    ),
    program="train.py",
    evidence=Evidence(
        warp="1.19.0",
        device="cpu",
        parameter="activations (train.py:80)",
        objective="loss (train.py:14), 4 backward calls",
        checks=(
            check("gradient", 12.386, 11.084, "differs"),
            check("sign 1", -0.03381234, -0.0330001, "differs"),
            check("sign 2", 1.25e-7, 3.0e-9, "inconclusive: kink"),
            check("coordinate 3", 2.0, 2.0001, "agrees"),
            check("zero part", 0.0, 0.0, "agrees"),
            check("gradient", 12.1, 11.0, "differs", iteration=2),
            check("sign 1", -0.0341, -0.0331, "differs", iteration=2),
        ),
        signature="subtly-wrong",
        forward_passes=14,
        counterfactual=Removal("overwrite of `states[1].q`", 0.00031, alone=0.00031, leave_one_out=0.117),
        suspects=("WL103", "WL104", "WL301"),
        harness=".warplint/evidence/train-WL103.py",
    ),
    help="give each step its own state",
)

RESULTS = (
    Result(
        rule="WL002",
        name="unreadable-file",
        verdict=Verdict.UNVERIFIED,
        message="this file was not checked: syntax error (line 3): invalid syntax",
        location=Location("broken.py", 3),
        reason="unreadable",
    ),
    Result(
        rule="WL201",
        name="missing-requires-grad",
        verdict=Verdict.UNVERIFIED,
        message="`f` is made without requires_grad, and the loss depends on it",
        location=Location("sim.py", 6, 5),
        reason="no-entry-point",
        help="pass requires_grad=True",
    ),
    CONFIRMED,
    Result(
        rule="WL105",
        name="reset-on-tape",
        verdict=Verdict.LATENT,
        message="`loss` is cleared, 100% of it, on the tape",
        location=Location("train.py", 15, 2, 15, 14),
        program="train.py",
        reason="the values that backward reads were changed, the gradient was not",
    ),
    Result(
        rule="WL902",
        name="gradients-verified",
        verdict=Verdict.NOTE,
        message="the gradient of loss agrees with finite differences",
        location=Location("train.py", 14, 9, 14, 28),
        program="train.py",
        evidence=Evidence(
            warp="1.19.0",
            device="cpu",
            parameter="k (train.py:3)",
            objective="loss (train.py:14)",
            checks=(check("gradient", 2.00001, 2.0, "agrees"),),
            signature="correct",
            forward_passes=9,
            covered=("k, 3 directions", "iterations 1 and 2"),
            ruled_out=("WL101 at train.py:11",),
        ),
    ),
)

ROWS = (
    ProgramRow(
        program="train.py",
        arguments=("--small",),
        interpreter="python3.11",
        warp="1.19.0",
        device="cpu",
        status=ProgramStatus.WRONG,
        parameters=("activations (train.py:80)",),
        substitutions=("range() at train.py:10 capped at 8",),
        forward_passes=14,
        seconds=1.234567,
    ),
    ProgramRow(
        program="tools/render.py",
        arguments=(),
        interpreter=None,
        warp=None,
        device=None,
        status=ProgramStatus.BLOCKED,
        reason="blocked: no module named 'pxr'",
    ),
)


@pytest.fixture
def report() -> Report:
    return Report(results=RESULTS, programs=ROWS)


@pytest.fixture
def context() -> Context:
    return Context(
        version="0.1.0",
        rules=load_rules(),
        read_source=SOURCES.get,
        start="/home/user/project/python",
        repository="/home/user/project",
        checked_files=4,
    )
