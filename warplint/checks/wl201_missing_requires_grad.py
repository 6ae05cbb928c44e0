"""WL201 missing-requires-grad: an array on the active path is born without a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL201"


@check(RULE, order=90)
def missing_requires_grad(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Arrays that a derivative would pass through if they had a gradient."""
    for cut in graph.cuts:
        if cut.buffer.origin == "clone" and cut.buffer.explicit:
            continue  # written out: somebody means to detach here
        if not claims.first(RULE, cut.buffer.site):
            continue
        name = spelled(cut.buffer, cut.written)
        source = cut.source.text or spelled(cut.source.buffer)
        message = (
            f"`{name}` is allocated without requires_grad, so nothing flows back from the objective through "
            f"`{cut.writer.label}` to `{source}`"
        )
        related = (
            Related(location(cut.writer.site), f"written here by `{cut.writer.label}`, from `{source}`"),
            *backward_notes(graph),
        )
        yield Finding(
            RULE,
            message,
            location(cut.buffer.site),
            related,
            name,
            "allocate it with requires_grad=True",
            ProbeRequest(Counterfactual.SET_REQUIRES_GRAD, statements([cut.buffer.statement])),
        )
