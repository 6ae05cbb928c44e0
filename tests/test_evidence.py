"""Evidence scripts: named in the results they belong to, and missed aloud."""

from __future__ import annotations

import sys

from warplint.model import Evidence, Location, Program, ProgramRow, ProgramStatus, Result, Verdict
from warplint.probe import ProbeSettings, plan
from warplint.probe.facts import Paths
from warplint.probe.interpreter import Interpreter
from warplint.probe.verdicts import Judged

RESULT = Result(
    rule="WL103",
    name="ping-pong-buffers",
    verdict=Verdict.CONFIRMED,
    message="`a` and `b` take turns",
    location=Location("train.py", 7),
    evidence=Evidence("1.19.0", "cpu", "k", "loss", (), "subtly-wrong", 9),
)
ROW = ProgramRow("train.py", (), sys.executable, "1.19.0", "cpu", ProgramStatus.WRONG)
PYTHON = Interpreter(sys.executable, "3.11.0", "1.19.0", "2.0.0", "--python")


def write(root):
    """Write the evidence of one result below ``root``: the result, and what went wrong."""
    (root / "train.py").write_text("print()\n")
    notes: dict[str, None] = {}
    judged = plan._with_scripts(
        Judged(ROW, (RESULT,), (), ((RESULT, {}),)),
        Program("train.py"),
        PYTHON,
        Paths(root, root),
        ProbeSettings(root),
        notes,
    )
    return judged.results[0], list(notes)


def test_a_script_is_written_and_named(tmp_path):
    result, notes = write(tmp_path)
    assert (tmp_path / result.evidence.harness).is_file()
    assert notes == []


def test_a_script_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / ".warplint").write_text("a file where the folder would be")
    result, notes = write(tmp_path)
    assert result.evidence.harness is None
    assert notes == ["no evidence was written to .warplint/evidence: not a directory"]
