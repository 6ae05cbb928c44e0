"""WL107 work-after-loss: launches after the loss, still on the tape, overwrite what backward needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check, group_sites, hazard_finding, location, spelled
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL107"


@check(RULE, order=50)
def work_after_loss(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Hazards whose writer comes after the last operation that made the objective."""
    hazards = [
        h
        for h in graph.hazards
        if not h.writer.beside and graph.follows_objective(h.writer) and not claims.taken(h.buffer, RULE)
    ]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        if not claims.first(RULE, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        line = location(hazard.reader.site).line
        message = (
            f"`{name}` is overwritten by `{hazard.writer.label}` after the loss is complete but before "
            f"backward(), while the backward pass of `{hazard.reader.label}` (line {line}) still needs its "
            "value"
        )
        yield hazard_finding(
            graph,
            RULE,
            hazard,
            hazard.writer.site,
            message,
            "move it out of the tape and behind backward()",
            group_sites(hazards, hazard),
        )
