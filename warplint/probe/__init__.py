"""The probe: runs the programs under check and turns findings into verdicts.

Programs run in a sandbox, under the project's own interpreter; the part that lives in their
process is ``runtime/``. This package only plans, listens and judges: it imports neither warp
nor numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplint.model import Account, Finding, Program, ProgramRow, Result


@dataclass(frozen=True)
class ProbeSettings:
    """How programs are run. Times in seconds; ``root`` is the directory of the call."""

    root: Path
    timeout: float = 60.0
    """Wall-clock limit of one program."""
    budget: float = 600.0
    """Wall-clock limit of all programs together."""
    python: str | None = None
    evidence: bool = True
    device: str = "cpu"
    jobs: int = 1
    overrides: tuple[tuple[str, str], ...] = ()
    """``module.NAME`` → Python expression, for the probe only."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables that the programs need."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters to measure; none: all that are found."""
    objective: str | None = None
    """Name of the number to take finite differences of; none: what the backward pass is given."""
    tracker: bool = False
    """Whether Warp's own overwrite tracker is run as well, for its warnings."""
    investigate: bool = False
    """Whether it is also told where autodiff and finite differences part, and what training does."""
    horizon: int | None = None
    """Time steps to measure over, instead of as many as the program takes."""
    iteration: int | None = None
    """Iteration of the optimizer to measure, instead of the first ones."""
    overlay: tuple[tuple[str, bytes], ...] = ()
    """Files by display path with the contents to run in their place; the user's own stay as they are."""
    cache: bool = True
    """Whether what an earlier, unchanged run told may be used again."""


@dataclass(frozen=True)
class ProgressEvent:
    """One program's probe has come to ``stage`` (scout, measure, attribute, done)."""

    program: str
    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class Slope:
    """The derivative of an objective along one direction, by finite differences and by autodiff."""

    direction: str
    """Directions of one name are the same vector, in whichever program."""
    ad: float
    fd: float
    noise: float


@dataclass(frozen=True)
class Objective:
    """What a program's objective is worth in its first iteration."""

    program: str
    parameter: str
    value: float
    sigma: float
    """The spread of the value from one evaluation to the next."""
    curve: tuple[float, ...] = ()
    """The values in the measured iterations."""
    slopes: tuple[Slope, ...] = ()


@dataclass(frozen=True)
class ProbeReport:
    """Verdicts for every finding, and a row for every program."""

    results: tuple[Result, ...]
    programs: tuple[ProgramRow, ...]
    notes: tuple[str, ...] = ()
    """Lines for stderr: what went wrong beside the verdicts."""
    accounts: tuple[Account, ...] = ()
    """What is told beside the verdicts, where it was asked for; one a program."""
    objectives: tuple[Objective, ...] = ()
    """The objectives as the programs first compute them, before any step of an optimizer."""


def probe(
    programs: Sequence[Program],
    findings: Sequence[Finding],
    settings: ProbeSettings,
    progress: Callable[[ProgressEvent], None] = lambda event: None,
    alone: Sequence[Finding] = (),
) -> ProbeReport:
    """Run ``programs`` and decide ``findings``; ``alone`` are only said where they are proved.

    Never raises for what a program does: a program that cannot be run is a row with its
    reason, and the findings only it could decide come back unverified.
    """
    from warplint.probe.plan import run_all

    return run_all(programs, findings, settings, progress, alone)
