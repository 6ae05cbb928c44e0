"""WL508 unconverged-solver: a few iterations on the tape stand for the solution of an equation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, statements
from warplint.model import Counterfactual, Finding, ProbeRequest
from warplint.static.said import says_solver

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.events import Event

RULE = "WL508"
FEWEST, MOST = 3, 20
"""Turns of a fixed number of iterations that may be too few."""


@check(RULE, order=210)
def unconverged_solver(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Launches of a loop that hand one state on and are said to solve something."""
    if not graph.objective_known:
        return
    for first, turns in graph.iterations:
        if not FEWEST <= turns <= MOST or not claims.first(RULE, (first.call_path, first.turns[:-1])):
            continue
        again = [e for e, n in graph.iterations if n == turns and e.call_path == first.call_path]
        if not any(_is_solver(event) for event in again):
            continue
        yield Finding(
            RULE,
            f"{turns} iterations of `{first.label}` stand for the solution of an equation: the gradient is "
            "that of the unfinished iteration",
            location(first.site),
            tuple(backward_notes(graph)),
            None,
            "iterate until nothing changes any more, or solve for the adjoint at the solution",
            ProbeRequest(Counterfactual.MORE_TURNS, statements([e.statement for e in again])),
        )


def _is_solver(event: Event) -> bool:
    return says_solver(event.site, event.call_path, event.label)
