"""Kernels whose gradients were measured: what the static pass says of each."""

from __future__ import annotations

import pytest
from kernel_cases import CASES

from warplint.source.discovery import discover
from warplint.static import analyze


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_wrong_is_found_and_what_is_right_is_not(case, tmp_path):
    (tmp_path / "program.py").write_text(case.program, encoding="utf-8")
    found = analyze(discover([tmp_path], root=tmp_path).files, (), root=tmp_path)
    assert not found.internal_errors
    rules = {finding.rule for finding in found.findings if not finding.is_note}
    expected = case.wrong or case.hint
    assert rules == ({expected} if expected else set())
