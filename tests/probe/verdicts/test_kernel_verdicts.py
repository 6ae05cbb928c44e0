"""What is said of kernels whose own adjoint is off: which finding, which rule, and on purpose or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from verdict_facts import PATHS, PROGRAM, attribution, check, episode, facts, finding, overwrite

from warplint.model import Counterfactual, Finding, ProbeRequest, ProgramStatus, Verdict
from warplint.probe.facts import Facts, Paths
from warplint.probe.verdicts import judge_program

WRONG = episode(1, check(1.2, 1.0, "differs"), check(0.5, 0.9, "differs", "random signs 1"))
REPAIRED = {"what": "custom-adjoint", "name": "bend", "place": ["sim.py", 5]}


def cause(*repairs: dict[str, Any], finite: bool = True) -> dict[str, Any]:
    return {
        "key": ["adjoint", "sim.py", "8", "step"],
        "key_parts": ["adjoint", "sim.py", 8, "step"],
        "kind_of_cause": "adjoint",
        "stack": [["sim.py", 30, "simulate"]],
        "kernel": "step",
        "kernel_file": "sim.py",
        "kernel_line": 8,
        "finite": finite,
        "natives": [],
        "repairs": list(repairs),
        "alone": 0.0,
        "leave_one_out": 0.3,
    }


def predicted(rule: str, line: int) -> Finding:
    """A finding at a line of the kernel ``step``, which is launched at line 30."""
    launch = finding(30).location
    request = ProbeRequest(Counterfactual.REPLACE_ADJOINT, (launch,), kernel="step", kernel_file="sim.py")
    return replace(finding(line, rule=rule), request=request)


def told(found: dict[str, Any]) -> Facts:
    return facts(WRONG, attributions=(attribution(causes=[found], confirmed=[found]),))


def verdicts(findings: list[Finding], found: dict[str, Any]) -> dict[str, Verdict]:
    judged = judge_program(PROGRAM, findings, told(found), PATHS, "python")
    return {f.rule: result.verdict for f, result in judged.by_finding}


def test_the_finding_that_the_repair_speaks_of_is_confirmed():
    findings = [predicted("WL303", 12), predicted("WL402", 5)]
    assert verdicts(findings, cause(REPAIRED)) == {"WL303": Verdict.DISMISSED, "WL402": Verdict.CONFIRMED}


def test_one_finding_in_a_kernel_is_confirmed_where_no_repair_tells():
    findings = [predicted("WL303", 12), predicted("WL302", 10)]
    assert sorted(verdicts(findings, cause()).values()) == [Verdict.CONFIRMED, Verdict.DISMISSED]


@pytest.mark.parametrize(("finite", "rule"), [(True, "WL303"), (False, "WL305")])
def test_a_singular_point_shows_as_nan_and_nothing_else_does(finite, rule):
    findings = [predicted("WL303", 12), predicted("WL305", 10)]
    found = verdicts(findings, cause(finite=finite))
    assert [r for r, verdict in found.items() if verdict is Verdict.CONFIRMED] == [rule]


@pytest.mark.parametrize(
    ("repairs", "rule", "line"),
    [
        ((REPAIRED,), "WL402", 5),
        (({"what": "components", "name": "", "place": []},), "WL302", 8),
        (({"what": "unrolled", "name": "", "place": []},), "WL303", 8),
        ((), "WL901", 8),
    ],
)
def test_what_mends_a_kernel_names_the_rule(repairs, rule, line):
    (result,) = judge_program(PROGRAM, (), told(cause(*repairs)), PATHS, "python").results
    assert (result.rule, result.verdict) == (rule, Verdict.CONFIRMED)
    assert (result.location.file, result.location.line) == ("sim.py", line)
    assert "`step`" in result.message


@pytest.mark.parametrize("both", [True, False], ids=["both are confirmed", "its adjoint alone"])
def test_a_kernel_whose_threads_read_what_others_have_written_is_one_mistake(both):
    """Its adjoint is no derivative then, with the values put back or not: that is no fault of its own."""
    shared = {**overwrite(30, own=True), "aliased": True}
    confirmed = [shared, cause()] if both else [cause()]
    run = facts(WRONG, attributions=(attribution(causes=[shared, cause()], confirmed=confirmed),))
    (result,) = judge_program(PROGRAM, (), run, PATHS, "python").results
    assert (result.rule, result.location.line) == ("WL104", 30)
    assert result.evidence.counterfactual.relative_error == 0.0003


def test_it_is_told_once_where_reading_has_found_it_in_the_kernel():
    overwritten = overwrite(30, own=True)
    both = [cause(), overwritten]
    run = facts(WRONG, attributions=(attribution(causes=both, confirmed=both),))
    judged = judge_program(PROGRAM, [predicted("WL108", 8)], run, PATHS, "python")
    assert [r.rule for r in judged.results] == []
    assert [(f.rule, r.verdict) for f, r in judged.by_finding] == [("WL108", Verdict.CONFIRMED)]


def test_an_overwrite_by_another_kernel_does_not_hide_a_wrong_adjoint():
    elsewhere = overwrite(10, kernel="forces", own=True)
    run = facts(WRONG, attributions=(attribution(causes=[elsewhere, cause()], confirmed=[cause()]),))
    (result,) = judge_program(PROGRAM, (), run, PATHS, "python").results
    assert (result.rule, result.location.line) == ("WL901", 8)


def test_an_adjoint_for_steps_is_a_surrogate_whatever_the_code_says():
    facts = told(cause({**REPAIRED, "surrogate": True}))
    judged = judge_program(PROGRAM, (), facts, PATHS, "python")
    assert judged.row.status is ProgramStatus.INCONCLUSIVE
    (note,) = judged.results
    assert (note.rule, note.verdict) == ("WL402", Verdict.NOTE)
    assert "piecewise constant" in note.message


def test_a_tie_is_no_mistake():
    facts = told(cause({"what": "tie", "name": "", "place": []}))
    judged = judge_program(PROGRAM, (), facts, PATHS, "python")
    assert judged.row.status is ProgramStatus.INCONCLUSIVE
    (note,) = judged.results
    assert (note.rule, note.verdict, note.location.line) == ("WL306", Verdict.NOTE, 8)


@pytest.mark.parametrize(
    ("comment", "status"),
    [
        ("# straight-through: keep learning outside the limits", ProgramStatus.INCONCLUSIVE),
        ("# the slope of the bend", ProgramStatus.WRONG),
    ],
)
def test_a_surrogate_is_no_mistake_where_the_code_says_so(comment, status, tmp_path: Path):
    text = f"import warp as wp\n\n\n{comment}\n@wp.func_grad(bend)\ndef adj_bend(x: float, adj_ret: float):\n"
    (tmp_path / "sim.py").write_text(text + "    wp.adjoint[x] += adj_ret\n", encoding="utf-8")
    judged = judge_program(PROGRAM, (), told(cause(REPAIRED)), Paths(tmp_path, tmp_path), "python")
    assert judged.row.status is status
    expected = Verdict.CONFIRMED if status is ProgramStatus.WRONG else Verdict.NOTE
    assert [(r.rule, r.verdict) for r in judged.results] == [("WL402", expected)]


def test_a_surrogate_is_none_where_the_whole_gradient_cannot_be_measured(tmp_path: Path):
    (tmp_path / "sim.py").write_text("\n\n\n# straight-through\ndef adj_bend(): ...\n")
    noisy = episode(1, check(1.2, 1.0, "inconclusive: noise"))
    run = facts(noisy)
    run.launch_tests.append({**cause(REPAIRED), "wrong": True, "error": 0.5})
    judged = judge_program(PROGRAM, (), run, Paths(tmp_path, tmp_path), "python")
    assert ("WL402", Verdict.NOTE) in [(r.rule, r.verdict) for r in judged.results]
    assert Verdict.LATENT not in [r.verdict for r in judged.results]
