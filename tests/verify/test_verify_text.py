"""The text of `warplint verify`, from records of every kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from warplint.model import (
    Account,
    Check,
    Course,
    Evidence,
    Iteration,
    Localization,
    Location,
    Place,
    ProgramRow,
    ProgramStatus,
    Removal,
    Report,
    Result,
    Verdict,
)
from warplint.report import Context, render
from warplint.report.verify import headline
from warplint.rulebook import load_rules

RULES = ("WL101", "WL102", "WL103", "WL106", "WL201", "WL301", "WL902")
GOLDEN = Path(__file__).parent / "golden"
SOURCE = """import warp as wp


def simulate(x, y, loss):
    for _ in range(40):
        wp.launch(advance, dim=8, inputs=[x], outputs=[y])
        x, y = y, x
    tape.backward(loss)
"""
EVIDENCE = Evidence(
    warp="1.19.0",
    device="cpu",
    parameter="k (fit.py:12)",
    objective="loss (fit.py:14), 1 backward call",
    checks=(
        Check("gradient", 1.3031, 1.2627, 1.4e-4, 0.032, "differs", 1e-2, 1),
        Check("random signs 1", 0.404, 0.39, 1.6e-4, 0.036, "differs", 1e-2, 1),
    ),
    signature="subtly-wrong",
    forward_passes=60,
    counterfactual=Removal("overwrite of `x` by `advance`", 2e-5, alone=2e-5, leave_one_out=0.036),
    harness=".warplint/evidence/WL103-fit-6.py",
    suspects=("WL103", "WL101", "WL301"),
    tracker=("argument `x` of `advance` written after it was read (fit.py:6, 39 times)",),
)
CAUSE = Result(
    rule="WL103",
    name="ping-pong-buffers",
    verdict=Verdict.CONFIRMED,
    message="`x` and `y` take turns as input and output",
    location=Location("fit.py", 6, 9, 6, 59),
    evidence=EVIDENCE,
    help="keep one array per step",
    docs="https://nvidia.github.io/warp/stable/user_guide/differentiability.html#array-overwrites",
)
CLEARED = Result(
    rule="WL201",
    name="missing-requires-grad",
    verdict=Verdict.DISMISSED,
    message="`y` is made without requires_grad",
    location=Location("fit.py", 4),
    reason="the gradient is wrong, but not because of this",
)
LATENT = Result(
    rule="WL106",
    name="write-before-backward",
    verdict=Verdict.LATENT,
    message="`loss` changes before backward()",
    location=Location("fit.py", 8),
    reason="the values changed in this run, but the gradient did not",
)
WHERE = Localization(
    kind="launch",
    text="coming from the loss, autodiff is right until it comes to `advance` in step 27 of 40",
    location=Location("fit.py", 6),
    parameter="k",
    direction="gradient",
    iteration=1,
    steps=40,
    places=(
        Place("the loss", 1.2627, 1.2627, 3e-4, 0.0, "agrees"),
        Place("before `advance`", 1.26271, 1.2627, 3e-4, 8e-6, "agrees", 28, Location("fit.py", 6)),
        Place("before `advance`", 1.3031, 1.2627, 3e-4, 0.032, "differs", 27, Location("fit.py", 6)),
        Place("the gradient", 1.3031, 1.2627, 3e-4, 0.032, "differs"),
    ),
)
COURSE = Course(
    verdict="grows",
    text="the objective gets worse, from 4.5 to 7e+06 in 3 iterations",
    hints=("the first update goes 24.7 along the gradient: the learning rate is too large",),
    iterations=(Iteration(1, 4.5, 25.0, 24.7), Iteration(2, 496.5, 270.0, 268.0), Iteration(3, 7.094e6)),
)
MEASURED = Result(
    rule="WL902",
    name="gradients-verified",
    verdict=Verdict.NOTE,
    message="the gradient of `k` is right: autodiff agrees with finite differences at iteration 1",
    location=Location("fit.py", 8),
    evidence=replace(
        EVIDENCE,
        checks=(Check("gradient", 2.0, 2.0001, 1e-4, 5e-5, "agrees", 1e-2, 1),),
        signature="correct",
        counterfactual=None,
        harness=None,
        suspects=(),
        tracker=(),
        covered=("k (fit.py:12): iterations 1; gradient",),
    ),
)


def row(status: ProgramStatus, reason: str | None = None) -> ProgramRow:
    return ProgramRow("fit.py", ("--small",), "python", "1.19.0", "cpu", status, reason, forward_passes=60)


WRONG = Report((CAUSE, CLEARED, LATENT), (row(ProgramStatus.WRONG),), account=Account(localization=WHERE))
RIGHT = Report(
    (MEASURED,),
    (row(ProgramStatus.VERIFIED),),
    account=Account(
        course=COURSE, explained=("`k` (fit.py:12): parameter; its gradient is read by a launch",)
    ),
)
UNTOLD = Report(
    (),
    (row(ProgramStatus.INCONCLUSIVE, "chaotic, the difference quotient changes at every step size"),),
    account=Account(
        numbers=("finite differences along `gradient` by step: 19.5 at 0.02, 6.62 at 0.005",),
        advice=("shorten the horizon until differences settle",),
        memory=("a step keeps 12 MiB for the backward pass: 400 steps need 4.7 GiB",),
    ),
)


@pytest.fixture
def context() -> Context:
    rules = {id: rule for id, rule in load_rules().items() if id in RULES}
    return Context(version="0.1.0", rules=rules, read_source={"fit.py": SOURCE}.get, explain=True)


@pytest.mark.parametrize(("name", "report"), [("wrong", WRONG), ("right", RIGHT), ("untold", UNTOLD)])
def test_text(name, report, context, golden):
    golden(GOLDEN / f"{name}.txt", render("text", report, context))


def test_the_verdict_is_the_first_line_however_long_it_is(context):
    for report in (WRONG, RIGHT, UNTOLD):
        assert render("text", report, replace(context, width=60)).partition("\n")[0] == headline(report)


def test_nothing_is_ruled_out_of_a_program_that_did_not_run(context):
    reason = "the program raised ImportError: no name"
    told = render("text", Report((), (row(ProgramStatus.BLOCKED, reason),), account=Account()), context)
    assert told.startswith(f"it cannot be told whether the gradients are right: {reason}")
    assert "ruled out" not in told


def test_a_difference_without_a_known_cause_names_where_it_parts():
    unknown = replace(
        CAUSE, rule="WL901", name="gradient-mismatch", message="the gradient of `k` differs by 3%"
    )
    report = replace(WRONG, results=(unknown,))
    assert headline(report) == (
        "the gradients are wrong, and no known pattern is the cause: the gradient of `k` differs by 3%; "
        f"{WHERE.text}"
    )


def test_a_search_that_ran_out_of_time_is_no_search_without_result(context):
    unknown = replace(
        CAUSE, rule="WL901", name="gradient-mismatch", message="the gradient of `k` differs by 3%"
    )
    account = Account(advice=("the search for the cause ended with the time limit: give it more",))
    report = replace(WRONG, results=(unknown,), account=account)
    assert headline(report) == (
        "the gradients are wrong, and the cause was not found in time: the gradient of `k` differs by 3%"
    )
    assert "what to do: the search for the cause ended" in render("text", report, context)


def test_the_cause_that_matters_most_is_named_first():
    small = replace(
        CAUSE,
        location=Location("fit.py", 2),
        evidence=replace(EVIDENCE, counterfactual=Removal("something small", 2e-5, leave_one_out=0.001)),
    )
    report = replace(WRONG, results=(small, CAUSE))
    assert headline(report).startswith("the gradients are wrong because of fit.py:6 (and 1 more): ")


def test_what_is_true_of_an_older_warp_alone_is_told(context):
    rules = {"WL109": load_rules()["WL109"]}
    old = replace(RIGHT, programs=(replace(RIGHT.programs[0], warp="1.16.2"),))
    assert "Warp 1.16.2\n  WL109: Before 1.17." in render("text", old, replace(context, rules=rules))
    assert "WL109: " not in render("text", RIGHT, replace(context, rules=rules))


def test_other_formats_carry_the_same_verdict(context):
    assert f'"headline": "{headline(RIGHT)}"' in render("json", RIGHT, context)
    assert "WL103" in render("sarif", WRONG, context)
