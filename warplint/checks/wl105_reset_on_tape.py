"""WL105 reset-on-tape: an array that is live on the tape is reset without a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.aliasing import is_unrecorded
from warplint.checks.base import (
    Claims,
    allocation_note,
    backward_notes,
    check,
    hazard_finding,
    location,
    spelled,
    statements,
    turn_words,
)
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import Reset, ScopeGraph

RULE = "WL105"
_HELP = "allocate a fresh array inside the loop, or one per step, instead of resetting one"


@check(RULE, order=30)
def reset_on_tape(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Resets that destroy a needed value, or leave an adjoint that is counted again."""
    for reset in graph.resets:
        if claims.taken(reset.buffer, RULE):
            continue
        claims.take(reset.buffer, RULE)
        if claims.first(RULE, reset.event.site):
            yield _counted_again(graph, reset)
    hazards = [h for h in graph.hazards if is_unrecorded(h) and not claims.taken(h.buffer, RULE)]
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


def _counted_again(graph: ScopeGraph, reset: Reset) -> Finding:
    name = spelled(reset.buffer, reset.written)
    message = (
        f"`{name}` is reset by `{reset.event.label}`{turn_words(reset.event)}, which the tape does not "
        f"record: the adjoint of its new contents is counted again in the earlier `{reset.earlier.label}`"
    )
    related = [
        Related(location(reset.earlier.site), f"written on the tape before, by `{reset.earlier.label}`")
    ]
    if reset.later is not None:
        related.append(Related(location(reset.later.site), f"used afterwards by `{reset.later.label}`"))
    return Finding(
        RULE,
        message,
        location(reset.event.site),
        (*related, *allocation_note(reset.buffer), *backward_notes(graph)),
        name,
        _HELP,
        ProbeRequest(Counterfactual.RESTORE_VALUES, statements([reset.event.statement])),
    )
