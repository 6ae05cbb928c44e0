"""WL103 ping-pong-buffers: a few buffers take turns over many steps of one tape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.aliasing import is_aliased, is_ping_pong
from warplint.checks.base import Claims, check, group_sites, hazard_finding, location, spelled, turn_words
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL103"


@check(RULE, order=20)
def ping_pong_buffers(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Hazards whose writer took the same buffer as its input on an earlier turn."""
    hazards = [
        h
        for h in graph.hazards
        if not claims.taken(h.buffer, RULE) and not is_aliased(h) and is_ping_pong(graph, h)
    ]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        where = hazard.written.rebound or hazard.writer.site
        if not claims.first(RULE, where, hazard.buffer.site, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        line = location(hazard.reader.site).line
        message = (
            f"`{name}` takes turns as input and output: it is overwritten by `{hazard.writer.label}`"
            f"{turn_words(hazard.writer)} while the backward pass of `{hazard.reader.label}` (line {line}) "
            "still needs its value"
        )
        yield hazard_finding(
            graph,
            RULE,
            hazard,
            where,
            message,
            "keep one array per step (a list of states) instead of swapping buffers on the tape",
            group_sites(hazards, hazard),
        )
