"""What a comparison of a custom adjoint with its function's derivative says, and of which finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from warplint.model import Finding, Location, Program, Result, Verdict
from warplint.probe.facts import Paths
from warplint.probe.intent import says_surrogate

RULES = ("WL401", "WL402")


def numbers(row: dict[str, Any]) -> str:
    """The adjoint and the derivative at one place where they differ."""
    return (
        f"at {row['at']} the derivative for `{row['argument']}` is {row['derivative']:.4g}, "
        f"this adjoint gives {row['adjoint']:.4g}"
    )


def surrogate_note(row: dict[str, Any], paths: Paths) -> str | None:
    """What is worth saying of a custom adjoint that is not meant to be the derivative."""
    name = row["function"]
    if says_surrogate((row["file"], row["line"]), paths):
        return f"the custom adjoint of `{name}` is no derivative, as the code says: a surrogate"
    if row["surrogate"]:
        return (
            f"`{name}` is piecewise constant, and its custom adjoint is a surrogate for the derivative zero"
        )
    return None


def place(row: dict[str, Any], paths: Paths) -> Location:
    """Where the custom adjoint is defined."""
    return Location(paths.display(str(row["file"])), int(row["line"]))


def predicted(row: dict[str, Any], findings: Iterable[Finding], paths: Paths) -> Iterator[Finding]:
    """The findings about this custom adjoint: statements of it before the definition as a whole."""
    file, first, last = paths.display(str(row["file"])), int(row["line"]), int(row["last"])
    inside = [
        f
        for f in findings
        if f.rule in RULES and f.location.file == file and first <= f.location.line <= last
    ]
    yield from sorted(inside, key=lambda f: (f.request is None or f.request.kernel is None, f.sort_key))


def latent(row: dict[str, Any], program: Program, reason: str, paths: Paths) -> Result:
    """A custom adjoint that is wrong somewhere, in a program whose gradient does not show it."""
    return Result(
        rule="WL402",
        name="",
        verdict=Verdict.LATENT,
        message=f"the custom adjoint of `{row['function']}` is not the derivative of the function",
        location=place(row, paths),
        program=program.label,
        reason=f"{reason}; {numbers(row)}",
        help="differentiate the function again, and accumulate into every argument",
    )
