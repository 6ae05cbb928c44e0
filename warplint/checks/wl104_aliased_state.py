"""WL104 aliased-state: two states that are meant to be different are one array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.aliasing import is_aliased
from warplint.checks.base import Claims, check, group_sites, hazard_finding, location, spelled, turn_words
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL104"


@check(RULE, order=10)
def aliased_state(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Hazards where input and output of a step are the same array under two names."""
    hazards = [h for h in graph.hazards if not claims.taken(h.buffer, RULE) and is_aliased(h)]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        where = hazard.written.rebound or hazard.read.rebound or hazard.writer.site
        if not claims.first(RULE, where, hazard.buffer.site, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        read, written = hazard.read.text, hazard.written.text
        names = f"`{read}` and `{written}` are" if read != written else f"both `{read}` are"
        line = location(hazard.reader.site).line
        message = (
            f"{names} one array (`{name}`): `{hazard.writer.label}` overwrites it{turn_words(hazard.writer)} "
            f"while the backward pass of `{hazard.reader.label}` (line {line}) still needs its value"
        )
        yield hazard_finding(
            graph,
            RULE,
            hazard,
            where,
            message,
            "give the output an array of its own, for example with `wp.empty_like`",
            group_sites(hazards, hazard),
        )
