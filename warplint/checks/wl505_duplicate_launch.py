"""WL505 duplicate-launch: a launch is recorded again with nothing changed in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL505"


@check(RULE, order=94)
def duplicate_launch(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Repeated launches: wrong where the output keeps its gradient, a note elsewhere."""
    retained = {buffer.number for buffer, _, _ in graph.retained}
    for output, first, second in graph.repeated:
        same_place = (first.site, first.call_path) == (second.site, second.call_path)
        if same_place or not claims.first(RULE, second.site):
            continue  # (in a loop, the turns may differ in what the host does between them)
        name = spelled(output.buffer, output)
        first_place = [Related(location(first.site), "recorded before here")] * (first.site != second.site)
        wrong = output.buffer.number in retained
        if wrong:
            claims.first("WL504", output.buffer.site)
            what = f"and `{name}` keeps its gradient: both launches hand the same adjoint on"
        else:
            what = f"which stores into `{name}` what is there already"
        yield Finding(
            RULE,
            f"`{second.label}` is recorded a second time with the same arguments, {what}",
            location(second.site),
            (
                *first_place,
                *(backward_notes(graph) if wrong else ()),
            ),
            name,
            f"launch `{second.label}` once"
            + (f", or allocate `{name}` without retain_grad" if wrong else ""),
            ProbeRequest(
                Counterfactual.DROP_DUPLICATE if wrong else Counterfactual.NOTHING,
                statements([second.statement]),
            ),
        )
