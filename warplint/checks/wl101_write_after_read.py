"""WL101 write-after-read: a launch overwrites a value that an earlier recorded launch needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check, group_sites, hazard_finding, location, spelled, turn_words
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL101"


@check(RULE, order=80)
def write_after_read(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Whatever the more specific rules have left of the overwritten values."""
    hazards = [
        h for h in graph.hazards if not claims.taken(h.buffer, RULE) and h.writer.site not in claims.launches
    ]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        if not claims.first(RULE, hazard.buffer.site, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        line = location(hazard.reader.site).line
        message = (
            f"`{name}` is overwritten by `{hazard.writer.label}`{turn_words(hazard.writer)} while the "
            f"backward pass of `{hazard.reader.label}` (line {line}) still needs its value"
        )
        yield hazard_finding(
            graph,
            RULE,
            hazard,
            hazard.writer.site,
            message,
            f"write into a fresh array each time, or keep one `{name}` per step",
            group_sites(hazards, hazard),
        )
