"""When is a finding confirmed, latent, dismissed or left unverified?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from verdict_facts import PATHS, PROGRAM, attribution, check, episode, facts, finding, overwrite

from warplint.model import ProgramStatus, Verdict
from warplint.probe.facts import Facts, Paths
from warplint.probe.verdicts import Judged, judge_program

WRONG = episode(1, check(1.2, 1.0, "differs"), check(0.5, 0.4, "differs", "random signs 1"))
RIGHT = episode(1, check(1.0, 1.0, "agrees"))


def judge(run: Facts, *findings: object) -> Judged:
    return judge_program(PROGRAM, findings, run, PATHS, "python")  # type: ignore[arg-type]


def verdicts(judged: Judged) -> list[tuple[str, str]]:
    results = [*judged.results, *(r for _, r in judged.by_finding)]
    return sorted((r.rule, str(r.verdict)) for r in results)


def test_a_finding_is_confirmed_when_its_removal_mends_the_gradient() -> None:
    cause = overwrite(10)
    judged = judge(facts(WRONG, attributions=(attribution(causes=[cause], confirmed=[cause]),)), finding(10))
    ((_, result),) = judged.by_finding
    assert (judged.row.status, result.verdict) == (ProgramStatus.WRONG, Verdict.CONFIRMED)
    removal = result.evidence.counterfactual
    assert (removal.alone, removal.leave_one_out, removal.relative_error) == (0.0003, 0.2, 0.0003)
    assert judged.results == (), "one fault, one report"


def test_an_innocent_pattern_beside_the_cause_is_dismissed() -> None:
    cause, innocent = overwrite(10), overwrite(30)
    run = facts(WRONG, attributions=(attribution(causes=[cause, innocent], confirmed=[cause]),))
    by_line = {f.location.line: r.verdict for f, r in judge(run, finding(10), finding(30)).by_finding}
    assert by_line == {10: Verdict.CONFIRMED, 30: Verdict.DISMISSED}


def test_a_cause_that_only_the_run_saw_is_reported_by_the_rule_it_breaks() -> None:
    cause = overwrite(10)
    judged = judge(facts(WRONG, attributions=(attribution(causes=[cause], confirmed=[cause]),)))
    (result,) = judged.results
    assert (result.rule, result.verdict) == ("WL101", Verdict.CONFIRMED)
    assert (result.location.file, result.location.line) == ("sim.py", 10)
    assert "`state`" in result.message


def test_a_difference_that_no_cause_explains_is_a_mismatch_at_the_backward_call() -> None:
    run = facts(WRONG, attributions=(attribution(causes=[overwrite(10)], confirmed=[]),))
    judged = judge(run, finding(10))
    (result,) = judged.results
    assert (result.rule, result.verdict, result.location.line) == ("WL901", Verdict.CONFIRMED, 20)
    ((_, left),) = judged.by_finding
    assert left.verdict is Verdict.UNVERIFIED


def test_a_finding_is_not_dismissed_by_a_cause_that_leaves_another_parameter_wrong() -> None:
    other = episode(1, check(0.3, 1.0, "differs"), check(0.1, 0.4, "differs"), parameter="b", variable="1")
    found = attribution(causes=[overwrite(10)], confirmed=[overwrite(10)])
    nothing = attribution(causes=[overwrite(10)], confirmed=[], parameter="b", variable="1")
    run = facts(WRONG, other, attributions=(found, nothing))
    by_line = {f.location.line: r.verdict for f, r in judge(run, finding(10), finding(30)).by_finding}
    assert by_line == {10: Verdict.CONFIRMED, 30: Verdict.UNVERIFIED}


def test_a_mismatch_names_what_remains_suspect_in_the_order_of_the_signature() -> None:
    causes = [overwrite(10), overwrite(30)]
    run = facts(WRONG, attributions=(attribution(causes=causes, confirmed=[]),))
    judged = judge(run, finding(10, rule="WL301"), finding(30), finding(99))
    (result,) = judged.results
    assert [(site.location.line, site.message.split()[3]) for site in result.related] == [
        (30, "WL101,"),
        (10, "WL301,"),
    ], "line 99 was not reached"
    assert result.evidence.suspects[:3] == ("WL101", "WL301", "WL103")


def test_a_search_that_ran_out_of_time_is_not_told_as_one_that_found_nothing() -> None:
    late = attribution(causes=[], confirmed=[], problem="the time limit was reached")
    ((_, left),) = judge(facts(WRONG, attributions=(late,)), finding(10)).by_finding
    assert left.verdict is Verdict.UNVERIFIED
    assert left.reason == (
        "the gradient is wrong, but whether this is why was not found out: the time limit was reached"
    )


@pytest.mark.parametrize(("kernel", "rule"), [("step", "WL301"), ("forces", "WL901")])
def test_a_product_in_place_is_confirmed_by_the_adjoint_of_its_own_kernel(kernel: str, rule: str) -> None:
    """The launch stored the factor's value itself: nothing from before it could be put back."""
    cause = {
        **overwrite(10, kernel=kernel),
        "key": ["adjoint", "sim.py", "1", kernel],
        "kind_of_cause": "adjoint",
        "finite": True,
        "repairs": [],
        "natives": [],
    }
    run = facts(WRONG, attributions=(attribution(causes=[cause], confirmed=[cause]),))
    predicted = finding(10, rule="WL301")
    predicted = replace(predicted, request=replace(predicted.request, kernel="step"))
    assert (rule, "confirmed") in verdicts(judge(run, predicted))


def test_a_difference_in_one_direction_alone_is_not_believed() -> None:
    run = facts(episode(1, check(1.2, 1.0, "differs"), check(0.5, 0.5, "agrees", "random signs 1")))
    judged = judge(run)
    assert judged.row.status is ProgramStatus.INCONCLUSIVE
    assert Verdict.CONFIRMED not in {r.verdict for r in judged.results}


def test_agreement_in_another_iteration_does_not_outvote_a_difference() -> None:
    run = facts(
        episode(1, check(1.2, 1.0, "differs"), check(0.5, 0.5, "agrees", "random signs 1")),
        episode(2, check(1.0, 1.0, "agrees")),
    )
    assert judge(run).row.status is ProgramStatus.INCONCLUSIVE


def test_it_is_believed_when_a_second_iteration_shows_it_too() -> None:
    run = facts(episode(1, check(1.2, 1.0, "differs")), episode(2, check(1.3, 1.0, "differs")))
    assert judge(run).row.status is ProgramStatus.WRONG


def test_a_single_scalar_parameter_has_no_second_direction() -> None:
    run = facts(episode(1, check(1.2, 1.0, "differs"), shape=[1]))
    assert judge(run).row.status is ProgramStatus.WRONG
    later = facts(
        episode(1, check(1.0, 1.0, "agrees"), shape=[1]), episode(2, check(2.0, 1.0, "differs"), shape=[1])
    )
    assert judge(later).row.status is ProgramStatus.WRONG
    vector = facts(episode(1, check(1.2, 1.0, "differs"), shape=[1], components=3))
    assert judge(vector).row.status is ProgramStatus.INCONCLUSIVE


def test_a_right_gradient_is_a_result_too() -> None:
    judged = judge(facts(RIGHT, episode(2, check(1.0, 1.0, "agrees"))), finding(10))
    assert judged.row.status is ProgramStatus.VERIFIED
    assert verdicts(judged) == [("WL101", "dismissed"), ("WL902", "note")]
    (note,) = judged.results
    assert "iterations 1 and 2" in note.message
    assert note.evidence.ruled_out == ("WL101",)


def test_a_zero_that_is_right_says_that_the_objective_does_not_depend_on_the_parameter() -> None:
    judged = judge(facts(episode(1, check(0.0, 0.0, "agrees")), episode(2, check(0.0, 0.0, "agrees"))))
    assert verdicts(judged) == [("WL902", "note")]
    assert "it is zero, as the objective does not depend on `w` (train.py:3)" in judged.results[0].message
    moved = judge(facts(episode(1, check(0.0, 0.0, "agrees")), episode(2, check(2.0, 2.0, "agrees"))))
    assert "it is zero" not in moved.results[0].message


def test_values_that_changed_without_harm_are_latent() -> None:
    run = facts(RIGHT, attributions=(attribution(causes=[overwrite(10)], confirmed=[], outcome="agrees"),))
    assert ("WL101", "latent") in verdicts(judge(run, finding(10)))


def test_a_launch_that_only_fills_its_own_output_is_no_hazard() -> None:
    own = overwrite(10, own=True)
    run = facts(RIGHT, attributions=(attribution(causes=[own], confirmed=[], outcome="agrees"),))
    assert ("WL101", "dismissed") in verdicts(judge(run, finding(10)))


def test_code_that_was_not_run_is_not_judged() -> None:
    ((_, result),) = judge(facts(RIGHT), finding(99)).by_finding
    assert (result.verdict, result.reason) == (Verdict.UNVERIFIED, "not-reached")


def test_one_parameter_too_weak_to_measure_leaves_the_program_undecided() -> None:
    weak = episode(1, check(1.0, 1.0, "inconclusive: kink"), parameter="b", variable="1")
    judged = judge(facts(RIGHT, weak), finding(10))
    assert judged.row.status is ProgramStatus.INCONCLUSIVE
    assert ("WL101", "unverified") in verdicts(judged)
    assert ("WL904", "note") in verdicts(judged)


def test_parameters_of_one_name_are_told_apart() -> None:
    rows = [
        episode(1, check(1.0, 1.0, "agrees"), place=place, variable=str(number))
        for number, place in enumerate((["train.py", 3], ["train.py", 8], ["train.py", 8]))
    ]
    (result,) = judge(facts(*rows)).results
    names = "`w` (train.py:3), `w` (train.py:8, array 1), `w` (train.py:8, array 2)"
    assert result.message.startswith(f"the gradient of {names} is right")
    assert [c.direction for c in result.evidence.checks] == [
        "w (train.py:3): gradient",
        "w (train.py:8, array 1): gradient",
        "w (train.py:8, array 2): gradient",
    ]
    other = episode(1, check(1.0, 1.0, "agrees"), parameter="v", variable="1")
    (result,) = judge(facts(rows[0], other)).results
    assert result.message.startswith("the gradient of `w`, `v` is right")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("the program raised ModuleNotFoundError: No module named 'pxr' (a.py:1)", "install pxr for"),
        (
            "the program raised ImportError: attempted relative import with no known parent package",
            "-m package",
        ),
        (
            "the program exited with status 2: a.py: error: the following arguments are required: data",
            "--entry",
        ),
        (
            "the program raised FileNotFoundError: [Errno 2] No such file or directory: 'x'",
            "in the directory of",
        ),
        ("the program raised OSError: [Errno 30] Read-only file system: '/x'", "outside the project"),
        ("the program raised URLError: <urlopen error [Errno -3] ...>", "without the network"),
        ("the program raised EOFError: EOF when reading a line (a.py:7)", "no standard input"),
        ("timed out after 60 s", "--timeout"),
        ("a time limit of 1 s measures nothing: a program needs 5 s", "--timeout"),
        ("the budget of 600 s for all programs was used up", "--budget"),
        ("the program raised ZeroDivisionError: division by zero (a.py:3)", "running it by itself"),
    ],
)
def test_a_blocked_program_comes_with_advice(reason: str, words: str) -> None:
    (result,) = judge(Facts(blocked=reason)).results
    assert result.rule == "WL903"
    assert words in result.help


@pytest.mark.parametrize(
    ("run", "status", "reason"),
    [
        (Facts(blocked="timed out after 60 s"), ProgramStatus.BLOCKED, "blocked: timed out after 60 s"),
        (
            Facts(nothing="not-reached: the program ran no backward pass"),
            ProgramStatus.INCONCLUSIVE,
            "not-reached: the program ran no backward pass",
        ),
        (
            Facts(nothing="blocked: the program raised ValueError: no data"),
            ProgramStatus.BLOCKED,
            "blocked: the program raised ValueError: no data",
        ),
        (Facts(), ProgramStatus.BLOCKED, "blocked: the probe ended without a result"),
    ],
)
def test_a_program_that_gave_no_numbers_leaves_findings_unverified_with_its_reason(
    run: Facts, status: ProgramStatus, reason: str
) -> None:
    judged = judge(run, finding(10))
    ((_, result),) = judged.by_finding
    assert (judged.row.status, result.verdict, result.reason) == (status, Verdict.UNVERIFIED, reason)
    assert [r.rule for r in judged.results] == ["WL903"]


@pytest.mark.parametrize(
    ("comment", "status"),
    [("# detach: the target is a constant", ProgramStatus.VERIFIED), ("# next state", ProgramStatus.WRONG)],
)
def test_a_copy_through_the_host_is_a_constant_where_the_code_says_so(
    comment: str, status: ProgramStatus, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"import warp\n{comment}\ntarget = wp.array(v.numpy())\n")
    row = episode(
        1,
        check(1.2, 1.0, "differs"),
        check(0.5, 0.4, "differs", "random signs 1"),
        constant=[["train.py", 3, "target"]],
        held=[check(1.2, 1.2, "agrees")],
    )
    judged = judge_program(PROGRAM, (), facts(row), Paths(tmp_path, tmp_path), "python")
    assert judged.row.status is status
    (result,) = judged.results
    assert "`target` (train.py:3)" in result.message


def cut(kind: str, line: int, **changes: Any) -> dict[str, Any]:
    """A cause: a path that is cut at a line of train.py."""
    return {
        "key": [kind, "train.py", str(line)],
        "key_parts": [kind, "train.py", line],
        "kind_of_cause": kind,
        "stack": [["train.py", line, "main"]],
        "buffer": "k",
        "name": "k",
        "array": "k",
        "born": [],
        "passed": None,
        "how": "off the tape",
        "operation": "launch",
        "kernel": "decode",
        "reader": None,
        "writer": {"stack": [], "kernel": "decode"},
        "view_of": None,
        "alone": 0.0,
        "leave_one_out": 1.0,
        **changes,
    }


CUTS = [cut("not-recorded", 4), cut("host-read", 4)]


@pytest.mark.parametrize("cause", CUTS, ids=lambda cause: cause["kind_of_cause"])
@pytest.mark.parametrize(
    ("comment", "status"),
    [
        ("# the stiffness is held constant during a step", ProgramStatus.VERIFIED),
        ("# bootstrapped target", ProgramStatus.VERIFIED),
        ("self.slow = blend(self.slow, x)", ProgramStatus.VERIFIED),
        ("update_ema(x)", ProgramStatus.VERIFIED),
        ("# slow: each step is copied", ProgramStatus.WRONG),
        ("# material constants", ProgramStatus.WRONG),
    ],
)
def test_a_path_that_is_cut_on_purpose_is_no_mistake(
    cause: dict[str, Any], comment: str, status: ProgramStatus, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(f"import warp\n\n{comment}\nwp.launch(decode, 3, [x], [k])\n")
    row = episode(1, check(0.0, 1.0, "differs"), check(0.0, 0.4, "differs", "random signs 1"))
    held = {name: {"fd": 0.0, "relative_error": 0.0} for name in ("gradient", "random signs 1")}
    run = facts(row, attributions=(attribution(causes=[cause], confirmed=[cause], held=held),))
    judged = judge_program(PROGRAM, (), run, Paths(tmp_path, tmp_path), "python")
    assert judged.row.status is status
    (result,) = judged.results
    verified = status is ProgramStatus.VERIFIED
    assert result.verdict is (Verdict.NOTE if verified else Verdict.CONFIRMED)
    if verified:
        assert "`k` (train.py:4) is held constant, as the code means it" in result.message


@pytest.mark.parametrize(
    ("says", "status"),
    [
        ("Semi-gradient: the target is a constant.", ProgramStatus.VERIFIED),
        ("The windows are truncated.", ProgramStatus.WRONG),
    ],
)
def test_a_docstring_may_name_the_method_once(says: str, status: ProgramStatus, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f'"""{says}"""\n' + "\n" * 8 + "wp.launch(decode, 3, [x], [k])\n")
    row = episode(1, check(0.0, 1.0, "differs"), check(0.0, 0.4, "differs", "random signs 1"))
    held = {name: {"fd": 0.0, "relative_error": 0.0} for name in ("gradient", "random signs 1")}
    cause = cut("not-recorded", 10)
    run = facts(row, attributions=(attribution(causes=[cause], confirmed=[cause], held=held),))
    assert judge_program(PROGRAM, (), run, Paths(tmp_path, tmp_path), "python").row.status is status


def test_beside_a_path_that_is_meant_to_be_cut_the_mistake_is_named_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\n\n# held constant\nwp.launch(decode, 3, [x], [k])\n" + "\n" * 30)
    row = episode(1, check(0.0, 1.0, "differs"), check(0.0, 0.4, "differs", "random signs 1"))
    both = [CUTS[0], overwrite(20)]
    run = facts(row, attributions=(attribution(causes=both, confirmed=both),))
    judged = judge_program(PROGRAM, (), run, Paths(tmp_path, tmp_path), "python")
    assert [r.rule for r in judged.results] == ["WL101"]
