"""WL301 in-place-multiply: a kernel multiplies an array element in place by an active factor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph

RULE = "WL301"


@check(RULE, order=5)
def in_place_multiply(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """``a[i] *= b[i]`` where b carries a derivative: the old ``a[i]`` is gone when it is needed."""
    events = graph.multiplies
    for event, item in events:
        buffer = event.bindings[item.path].buffer
        claims.take(buffer, RULE)
        if not claims.first(RULE, item.site):
            continue
        name = spelled(buffer, event.bindings[item.path])
        factors = " and ".join(f"`{p}`" for p in sorted(item.factors))
        message = (
            f"`{event.label}` multiplies `{item.path}` in place (`{name}` at line "
            f"{location(event.site).line}) by a factor that depends on {factors}, whose gradient "
            "needs the value before the write"
        )
        sites = [e.statement for e, other in events if other.site == item.site]
        yield Finding(
            RULE,
            message,
            location(item.site),
            (
                Related(location(event.site), f"`{event.label}` is launched on the tape here"),
                *backward_notes(graph),
            ),
            name,
            f"write the product to another array instead of back into `{item.path}`",
            ProbeRequest(
                Counterfactual.RESTORE_VALUES,
                statements(sites),
                kernel=event.effect.name,
                kernel_file=event.effect.file,
            ),
        )
