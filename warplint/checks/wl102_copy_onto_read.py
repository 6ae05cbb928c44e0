"""WL102 copy-onto-read: a copy overwrites a value that an earlier recorded launch needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.aliasing import is_copy
from warplint.checks.base import (
    Claims,
    check,
    group_sites,
    hazard_finding,
    location,
    reset_finding,
    spelled,
    turn_words,
)
from warplint.model import Finding

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL102"
_HELP = "go on with the copied array itself, or copy into a fresh one, instead of writing back into `{name}`"


@check(RULE, order=40)
def copy_onto_read(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Write-backs onto a needed value, and copies the tape cannot record onto live arrays."""
    hazards = [h for h in graph.hazards if is_copy(h) and not claims.taken(h.buffer, RULE)]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        if not claims.first(RULE, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        source = hazard.writer.bindings["source"]
        line = location(hazard.reader.site).line
        message = (
            f"`{name}` is overwritten by `{hazard.writer.label}` from `{source.text}`"
            f"{turn_words(hazard.writer)} while the backward pass of `{hazard.reader.label}` (line {line}) "
            "still needs its value"
        )
        sites = group_sites(hazards, hazard)
        help_text = _HELP.format(name=name)
        yield hazard_finding(graph, RULE, hazard, hazard.writer.site, message, help_text, sites)
    for reset in graph.resets:
        if reset.event.kind != "copy" or claims.taken(reset.buffer, RULE):
            continue
        claims.take(reset.buffer, RULE)
        if claims.first(RULE, reset.event.site):
            help_text = _HELP.format(name=spelled(reset.buffer, reset.written))
            yield reset_finding(graph, RULE, reset, "overwritten", help_text)
