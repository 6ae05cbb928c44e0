"""Exit status: what fails a run and what does not."""

from __future__ import annotations

import pytest
from cli_fakes import result, row

from warplint.cli.status import exit_status
from warplint.model import Location, ProgramStatus, Report, Result, Verdict
from warplint.rulebook import load_rules

RULES = load_rules()
UNREADABLE = Result("WL002", "unreadable-file", Verdict.UNVERIFIED, "m", Location("a.py", 1))
NOTE = Result("WL903", "probe-blocked", Verdict.NOTE, "m", Location("a.py", 1))


@pytest.mark.parametrize(
    ("results", "rows", "strict", "status"),
    [
        ((), (), False, 0),
        ((result(Verdict.CONFIRMED),), (), False, 1),
        ((result(Verdict.CONFIRMED, rule="WL901"),), (), False, 1),
        ((UNREADABLE,), (), False, 1),
        ((result(Verdict.LATENT),), (), False, 0),
        ((result(Verdict.LATENT),), (), True, 1),
        ((result(Verdict.UNVERIFIED),), (), False, 0),
        ((result(Verdict.UNVERIFIED),), (), True, 1),
        ((result(Verdict.DISMISSED),), (), True, 0),
        ((NOTE,), (), True, 0),
        ((NOTE,), (row(ProgramStatus.BLOCKED),), False, 0),
        ((NOTE,), (row(ProgramStatus.BLOCKED),), True, 1),
        ((), (row(ProgramStatus.INCONCLUSIVE),), True, 1),
        ((), (row(ProgramStatus.VERIFIED),), True, 0),
    ],
)
def test_with_a_probe(results, rows, strict, status):
    assert exit_status(Report(results, rows), RULES, probed=True, strict=strict) == status


@pytest.mark.parametrize(
    ("rule", "fail_on", "status"),
    [
        ("WL103", "very-high", 1),
        ("WL103", "never", 0),
        ("WL101", "very-high", 0),
        ("WL101", "high", 1),
        ("WL777", "high", 0),
    ],
)
def test_without_a_probe_precision_decides(rule, fail_on, status):
    report = Report((result(Verdict.UNVERIFIED, rule=rule),))
    assert exit_status(report, RULES, probed=False, static_fail_on=fail_on) == status


def test_through_the_command_line(project, stages, warplint):
    assert warplint("--no-probe").status == 1
    assert warplint("--no-probe", "--static-fail-on", "never").status == 0
    assert warplint("--no-probe", "--exit-zero").status == 0
    stages.results = (result(Verdict.UNVERIFIED, reason="not-reached"),)
    stages.rows = (row(ProgramStatus.VERIFIED),)
    assert warplint().status == 0
    assert warplint("--strict").status == 1
    stages.results = (result(Verdict.CONFIRMED),)
    assert warplint().status == 1
    assert warplint("--exit-zero").status == 0


def test_internal_errors_are_2_and_the_results_still_come(project, stages, warplint):
    stages.internal_errors = ("check WL104 failed on train.py: KeyError: 'x'",)
    run = warplint("--no-probe", "--exit-zero")
    assert run.status == 2
    assert "WL103" in run.out
    assert run.err == "warplint: internal error: check WL104 failed on train.py: KeyError: 'x'\n"
