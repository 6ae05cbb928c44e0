"""Fixes: from a result and the sources to changes that may mend it.

A module a kind of fix; each names its rules and yields candidates, the smallest first. None of
them claims to be right: ``proof`` tries them and keeps what was measured to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from warplint.fixes.project import Candidate, Problem, Project
from warplint.fixes.source import apply_edits
from warplint.model import Result
from warplint.source.facts import parse

__all__ = ["RESTRUCTURINGS", "Candidate", "Project", "candidates"]

RESTRUCTURINGS = frozenset({"WL503", "WL508", "WL509"})
"""Rules whose right fix is another program: it is described, never made."""

MOST = 8
"""Candidates of one result; further ones are not worth the time it takes to try them."""

Maker = Callable[[Problem], Iterable[Candidate]]


def _makers() -> dict[str, tuple[Maker, ...]]:
    from warplint.fixes import (
        adjoints,
        buffers,
        components,
        flags,
        host,
        inplace,
        loops,
        order,
        passes,
        seeds,
        singular,
    )

    found: dict[str, tuple[Maker, ...]] = {}
    for module in (
        *(order, buffers, flags, passes, inplace, components),
        *(loops, singular, adjoints, seeds, host),
    ):
        for rule, maker in module.FIXES.items():
            found[rule] = (*found.get(rule, ()), maker)
    return found


def _parses(candidate: Candidate, project: Project) -> bool:
    """Whether what a candidate leaves is Python."""
    for file in {edit.location.file for edit in candidate.edits}:
        source = project.source(file)
        try:
            edits = [edit for edit in candidate.edits if edit.location.file == file]
            text = apply_edits(source.data if source else b"", edits).decode("utf-8-sig")
        except ValueError:
            return False
        if parse(text)[0] is None:
            return False
    return True


def candidates(result: Result, project: Project) -> list[Candidate]:
    """Changes that may mend a result, the most likely first, each once."""
    problem = Problem(result, project)
    found: dict[tuple[object, ...], Candidate] = {}
    for maker in _makers().get(result.rule, ()):
        for candidate in maker(problem):
            if candidate.edits and _parses(candidate, project):
                found.setdefault(candidate.edits, candidate)
            if len(found) == MOST:
                return list(found.values())
    return list(found.values())
