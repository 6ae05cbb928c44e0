"""What becomes of findings and programs that no run decides."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from warplint.model import Finding, Location, Program, ProgramRow, ProgramStatus, Result, Verdict
from warplint.probe import ProbeSettings, plan
from warplint.probe.interpreter import Interpreter
from warplint.probe.verdicts import Judged

PYTHON = Interpreter("python", "3.11.0", "1.19.0", "2.0.0", "--python")
FINDING = Finding("WL501", "the gradient is never zeroed", Location("test_fit.py", 13, 9))
PROVED = Result("WL501", "", Verdict.CONFIRMED, "it still holds what was left", Location("test_fit.py", 13))
ROW = ProgramRow("run_tests.py", (), "python", "1.19.0", "cpu", ProgramStatus.WRONG)


def test_what_a_run_proved_beyond_its_imports_is_said_once() -> None:
    assert plan._merge([FINDING], [Judged(ROW, (PROVED,), ())], ()) == (PROVED,)
    elsewhere = replace(PROVED, location=Location("test_fit.py", 40))
    both = plan._merge([FINDING], [Judged(ROW, (elsewhere,), ())], ())
    assert [result.reason for result in both] == ["no-entry-point", None]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"timeout": 1.0}, "a time limit of 1 s measures nothing: a program needs 5 s"),
        ({"budget": 2.0}, "the budget of 2 s measures nothing: a program needs 5 s"),
        ({}, "the budget of 600 s for all programs was used up"),
    ],
)
def test_too_little_time_is_said(tmp_path: Path, monkeypatch, limits, reason) -> None:
    monkeypatch.setattr(plan, "choose", lambda *given: PYTHON)
    settings = ProbeSettings(tmp_path, **limits)
    judged = plan._probe_program(Program("fit.py"), (), settings, time.monotonic(), lambda event: None, {})
    assert judged.row.reason == reason
