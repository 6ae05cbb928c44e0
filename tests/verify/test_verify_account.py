"""The sentences of the story, from what a run tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplint.probe.account import course, localization, memory
from warplint.probe.facts import Paths

PATHS = Paths(Path("/project"), Path("/project"))

CALL = {"number": 0, "stack": [["fit.py", 9]], "ad": 2.0, "fd": 1.0, "left": 0.0, "outcome": "differs"}


def found(**more):
    told = {
        "parameter": "k",
        "place": ["fit.py", 3],
        "iteration": 1,
        "direction": "gradient",
        "ad": 2.0,
        "fd": 1.0,
        "noise": 0.001,
        "calls": [CALL],
        "call": 1,
        "cuts": [],
        "operations": [],
        "arrays": [],
        "steps": 40,
        "kind": "launch",
        "problem": None,
    }
    return {**told, **more}


def operation(**more):
    return {"step": 27, "what": "advance", "kind": "launch", "stack": [["fit.py", 6]], "finite": True, **more}


ADJOINT = "the adjoint of `advance` in step 27 of 40 (fit.py:6)"
RIGHT_UNTIL = f"coming from the loss, autodiff is right until it comes to {ADJOINT}"


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"changed": ["x"]}, ": `x` no longer holds what it held when this ran"),
        ({"changed": ["x", "y"]}, ": `x` and `y` no longer hold what they held when this ran"),
        ({"ungraded": ["f"]}, ": `f` changes with `k` but has no gradient, so the derivative ends there"),
        ({"numbers": ["mu"]}, ": its argument `mu` changes with `k`, but a number carries no gradient"),
        ({"given": ["y"]}, ": after it `y` is given its values off the tape, and no derivative follows"),
        ({"finite": False}, ": it makes something that is not finite of finite adjoints"),
        ({}, ": its arrays are as it left them, so the fault lies in the adjoint of the kernel itself"),
    ],
)
def test_what_is_the_matter_with_the_launch(what, sentence):
    assert localization(found(operations=[operation(**what)]), PATHS).text == RIGHT_UNTIL + sentence


def test_what_was_found_in_time_is_told():
    told = found(operations=[operation()], problem="the time limit was reached")
    assert localization(told, PATHS).text == (
        f"{RIGHT_UNTIL} (its arrays were not looked at: the time limit was reached)"
    )
    told = found(problem="the time limit was reached")
    assert localization(told, PATHS).text == "where they part was not found: the time limit was reached"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"kind": "seed", "arrays": ["force"]},
            "the gradient of `force` is not what the backward pass should begin",
        ),
        ({"kind": "start", "arrays": ["x"]}, "`x` changes with `k`, but the tape begins there"),
        ({"kind": "start", "earlier": 12}, "then come 12 launches that earlier passes left on the tape"),
        ({"kind": "start"}, "what is missing goes through the host, outside the tape"),
        (
            {"kind": "skipped", "operations": [operation()]},
            "of this launch and of those before it never runs",
        ),
        ({"kind": "after"}, "what the optimizer then reads is another one"),
    ],
)
def test_what_no_launch_is_to_blame_for(more, words):
    assert words in localization(found(**more), PATHS).text


def test_a_gradient_that_was_not_empty():
    told = localization(found(kind="after", calls=[{**CALL, "left": 1.0}]), PATHS)
    assert "the gradient was not empty when it began" in told.text


def trained(*objectives, onset=None, curvature=None, along=1.0):
    rows = [{"objective": v, "update": 1.0, "along": along} for v in objectives]
    ending = "finished"
    return course({"rows": rows, "ending": ending, "onset": onset, "curvature": curvature}, PATHS)


@pytest.mark.parametrize(
    ("objectives", "verdict"),
    [
        ((5.0, 3.0, 2.0, 1.5, 1.2), "falls"),
        ((1.0, 4.0, 60.0), "grows"),
        ((1.0, 3.0, 1.1, 2.9, 1.0, 3.1, 1.05), "oscillates"),
        ((1.0, 1.00001, 1.0, 0.99999, 1.0), "stands still"),
        ((1.0, 40.0, float("inf")), "not finite"),
    ],
)
def test_what_becomes_of_the_objective(objectives, verdict):
    assert trained(*objectives).verdict == verdict


def test_what_is_maximized_may_grow():
    assert trained(1.0, 2.0, 3.0, along=-1.0).verdict == "falls"


def test_where_numbers_run_away():
    onset = {"kernel": "advance", "stack": [["fit.py", 6]], "array": "v", "gradient": False, "occurrence": 31}
    (hint,) = trained(1.0, float("nan"), onset=onset).hints
    assert hint.startswith(
        "`advance` (fit.py:6, launch 31) is the first to make `v` not finite of finite values"
    )


def test_a_step_is_held_against_the_curvature():
    parabola = {"slope": -2.0, "curvature": 4.0}
    assert (
        trained(1.0, 2.0, curvature=parabola, along=1.5).hints[-1].endswith("the learning rate is too large")
    )
    assert trained(1.0, 0.9, curvature=parabola, along=1e-4).hints[-1].endswith("the learning rate is small")
    assert trained(1.0, 0.9, curvature={"slope": -2.0, "curvature": -4.0}).hints == ()


def test_memory_is_bytes_of_a_step_times_steps():
    (text,) = memory({"bytes": 16e6, "steps": 105.0, "limit": float(4 << 30), "all": 600.0})
    assert text == (
        "a step keeps 15.3 MiB of arrays for the backward pass: 600 steps need 8.94 GiB; the limit is 4 "
        "GiB for "
        "the program and its forks together"
    )
