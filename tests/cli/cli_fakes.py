"""Stand-ins for the stages, and what a probe may say."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from warplint.model import (
    Check,
    Evidence,
    Finding,
    Location,
    ProgramRow,
    ProgramStatus,
    Related,
    Result,
    Verdict,
)
from warplint.probe import Objective

TRAIN = """import warp as wp


def train(a, b, loss):
    with wp.Tape() as tape:
        for _ in range(8):
            wp.launch(step, dim=1, inputs=[a], outputs=[b])
            a, b = b, a
    tape.backward(loss)


if __name__ == "__main__":
    train()
"""

FINDING = Finding(
    rule="WL103",
    message="`a` and `b` take turns",
    location=Location("train.py", 7, 13, 7, 60),
    related=(Related(Location("train.py", 9, 5), "backward runs here"),),
    help="use one array for each step",
)


@dataclass
class Stages:
    """What the stand-ins return, and what they were called with."""

    findings: tuple[Finding, ...] = (FINDING,)
    results: tuple[Result, ...] = ()
    rows: tuple[ProgramRow, ...] = ()
    skipped: tuple[str, ...] = ()
    internal_errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    objectives: tuple[Objective, ...] = (Objective("train.py", "a", 2.0, 0.0),)
    edited: tuple[tuple[Result, ...], tuple[ProgramRow, ...]] = ((), ())
    """The results and rows of programs with edited files."""
    probed: list[dict[str, Any]] = field(default_factory=list)

    def analyze(self, files: Any, programs: Any, **options: Any) -> Any:
        shown = {file.display for file in files}
        findings = tuple(f for f in self.findings if f.location.file in shown)
        return SimpleNamespace(
            findings=findings, alone=(), skipped=self.skipped, internal_errors=self.internal_errors
        )

    def probe(self, programs: Any, findings: Any, settings: dict[str, Any], progress: Any, *more: Any) -> Any:
        self.probed.append({"programs": programs, "findings": findings, "settings": settings})
        for number, program in enumerate(programs, start=1):
            progress(SimpleNamespace(program=program.label, stage="done", done=number, total=len(programs)))
        told = self.edited if settings.get("overlay") else (self.results, self.rows)
        return SimpleNamespace(
            results=told[0], programs=told[1], notes=self.notes, objectives=self.objectives
        )


def result(verdict: Verdict, rule: str = "WL103", **more: Any) -> Result:
    """What a probe would say about `FINDING`."""
    evidence = None
    if verdict is Verdict.CONFIRMED:
        check = Check("gradient", 2.0, 1.0, 0.01, 1.0, "differs")
        evidence = Evidence("1.19.0", "cpu", "a (train.py:1)", "loss", (check,), "subtly-wrong", 9)
    return Result(
        rule=rule,
        name="",
        verdict=verdict,
        message=FINDING.message,
        location=FINDING.location,
        program="train.py",
        evidence=evidence,
        **more,
    )


def row(status: ProgramStatus, reason: str | None = None) -> ProgramRow:
    """One program's row."""
    return ProgramRow("train.py", (), "python", "1.19.0", "cpu", status, reason=reason, forward_passes=9)
