"""WL504 retained-rewritten: an array that keeps its gradient is written more than once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL504"


@check(RULE, order=95)
def retained_rewritten(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Arrays with ``retain_grad=True`` whose adjoint reaches a write that was overwritten."""
    for buffer, first, second in graph.retained:
        if not claims.first(RULE, buffer.site):
            continue
        name = spelled(buffer)
        yield Finding(
            RULE,
            f"`{name}` is allocated with retain_grad=True but written by `{first.label}` and again by "
            f"`{second.label}`: the adjoint of the last value stays and is handed to the first write too",
            location(buffer.site),
            (
                Related(location(first.site), f"written here by `{first.label}`"),
                Related(location(second.site), f"written again here by `{second.label}`"),
                *backward_notes(graph),
            ),
            name,
            f"allocate `{name}` without retain_grad, or give every write an array of its own",
            ProbeRequest(Counterfactual.CLEAR_RETAIN, statements([buffer.statement])),
        )
