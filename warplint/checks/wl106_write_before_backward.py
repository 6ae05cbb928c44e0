"""WL106 write-before-backward: a value changes beside the tape before its backward pass has run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.aliasing import changed_off_tape
from warplint.checks.base import (
    Claims,
    backward_notes,
    check,
    group_sites,
    hazard_finding,
    location,
    spelled,
    statements,
)
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import Hazard, ScopeGraph

RULE = "WL106"
_HELP = "move it behind backward(), or let it write to an array that the tape does not use"


@check(RULE, order=60)
def write_before_backward(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Needed values that the tape's own operations leave alone, but something else does not."""
    hazards = [h for h in graph.hazards if changed_off_tape(h) and not claims.taken(h.buffer, RULE)]
    for hazard in hazards:
        claims.take(hazard.buffer, RULE)
        if not claims.first(RULE, hazard.writer.site):
            continue
        name = spelled(hazard.buffer, hazard.read)
        line = location(hazard.reader.site).line
        message = (
            f"`{name}` is {_action(hazard)} between recording and backward(), while the backward pass of "
            f"`{hazard.reader.label}` (line {line}) still needs its value"
        )
        sites = group_sites(hazards, hazard)
        if hazard.writer.kind == "view":
            # No hook sees such a write; a run notices it when the backward pass begins.
            sites += [b.site for b in graph.recording.backwards]
        yield hazard_finding(graph, RULE, hazard, hazard.writer.site, message, _HELP, sites)
    yield from _changed_arguments(graph, claims)


def _changed_arguments(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Structs and lists of arguments: the tape holds the caller's own, not copies."""
    for mutation in graph.mutations:
        if not claims.first(RULE, mutation.site):
            continue
        launch = location(mutation.event.site)
        yield Finding(
            RULE,
            f"`{mutation.text}` is given another array before backward(), and the recorded launch of "
            f"`{mutation.event.label}` (line {launch.line}) holds the same object: its backward pass uses "
            "the new array",
            location(mutation.site),
            (Related(launch, f"recorded here by `{mutation.event.label}`"), *backward_notes(graph)),
            mutation.text,
            "make a struct or a list of its own for each launch",
            ProbeRequest(Counterfactual.RESTORE_VALUES, statements([mutation.statement])),
        )


def _action(hazard: Hazard) -> str:
    writer = hazard.writer
    if writer.kind == "view":
        return "changed through a view of its memory"
    return f"overwritten by `{writer.label}`" + (" on another tape" if writer.other_tape else "")
