"""Tests that reach a finding are its programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplint.model import Finding, Location
from warplint.source import discover, find_programs
from warplint.source.pytests import reaching_tests

LIBRARY = """\
import warp as wp


def record(x):
    with wp.Tape() as tape:
        wp.launch(step, 4, inputs=[x])
    return tape


class Solver:
    def run(self, x):
        return record(x)
"""
TESTS = """\
import warp as wp

from solver import Solver


def helper():
    return Solver().run(wp.zeros(4))


def test_name():
    assert Solver.__name__ == "Solver"


class TestSolver:
    def test_run(self):
        helper()


def test_alone():
    with wp.Tape() as tape:
        pass
    tape.backward()
"""


@pytest.fixture
def reaching(tmp_path: Path):
    def reaching(place: tuple[str, int], **files: str) -> list[str]:
        (tmp_path / "solver.py").write_text(LIBRARY)
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / "test_solver.py").write_text(TESTS)
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        found = discover(["."], root=tmp_path).files
        finding = Finding("WL101", "message", Location(*place))
        programs = find_programs(found, tmp_path)
        return [p.label for p in reaching_tests([finding], programs, found, tmp_path)]

    return reaching


def test_a_finding_in_the_lines_of_a_test(reaching) -> None:
    assert reaching(("tests/test_solver.py", 21)) == ["tests/test_solver.py::test_alone"]


def test_a_finding_in_what_a_test_calls_through_helpers(reaching) -> None:
    assert reaching(("solver.py", 6)) == ["tests/test_solver.py::TestSolver::test_run"]


def test_none_where_a_program_holds_the_finding(reaching) -> None:
    main = "import solver\n\nif __name__ == '__main__':\n    solver.record(None)\n"
    assert reaching(("solver.py", 6), main=main) == []


def test_none_where_no_test_comes_near(reaching) -> None:
    assert reaching(("other.py", 2), other="def record_more():\n    pass\n") == []
