"""WL105 reset-on-tape: an array that is live on the tape is reset without a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.aliasing import is_reset
from warplint.checks.base import (
    Claims,
    check,
    hazard_finding,
    location,
    reset_finding,
    spelled,
    turn_words,
)
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL105"
_HELP = "allocate a fresh array inside the loop, or one per step, instead of resetting one"


@check(RULE, order=30)
def reset_on_tape(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Resets that destroy a needed value, or leave an adjoint that is counted again."""
    for reset in graph.resets:
        if reset.event.kind != "reset" or claims.taken(reset.buffer, RULE):
            continue
        claims.take(reset.buffer, RULE)
        if claims.first(RULE, reset.event.site):
            yield reset_finding(graph, RULE, reset, "reset", _HELP)
    hazards = [h for h in graph.hazards if is_reset(h) and not claims.taken(h.buffer, RULE)]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        if not claims.first(RULE, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        line = location(hazard.reader.site).line
        message = (
            f"`{name}` is reset by `{hazard.writer.label}`{turn_words(hazard.writer)}, which the tape does "
            f"not record, while the backward pass of `{hazard.reader.label}` (line {line}) still needs its "
            "value"
        )
        sites = [h.writer.statement for h in hazards if h.writer.site == hazard.writer.site]
        yield hazard_finding(graph, RULE, hazard, hazard.writer.site, message, _HELP, sites)
