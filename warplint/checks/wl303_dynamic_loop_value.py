"""WL303 dynamic-loop-value: an adjoint uses a value that only a runtime loop can compute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check
from warplint.checks.kernel_faults import fault_findings
from warplint.model import Finding
from warplint.static.kernels.summary import FaultKind

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.events import Event
    from warplint.static.kernels.summary import Fault

RULE = "WL303"
KINDS = (FaultKind.LOOP, FaultKind.BREAK)


@check(RULE, order=7)
def dynamic_loop_value(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Values that a loop which is not unrolled carries on, where an adjoint needs them."""
    yield from fault_findings(graph, claims, RULE, KINDS, describe)


def describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    if fault.kind is FaultKind.BREAK:
        return (
            f"`{event.label}` leaves a loop early: its backward pass runs all turns of the loop",
            "turn the exit into a condition around the body, or loop over a count that is known beforehand",
            "",
        )
    return (
        f"the derivative of this statement in `{event.label}` needs the value of `{fault.name}`, which a "
        "loop with a runtime bound computes: the backward pass goes through the loop backwards and does "
        "not have it",
        f"move the loop into a @wp.func that returns the plain `{fault.name}`, store it in an array, or give "
        "the loop a constant bound of at most 16",
        "the loop that computes it",
    )
