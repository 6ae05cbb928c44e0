"""WL305 singular-point: an operand may reach a point where the derivative is infinite."""

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

RULE = "WL305"


@check(RULE, order=9)
def singular_point(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Roots and broken powers of something that nothing keeps above zero."""
    yield from fault_findings(graph, claims, RULE, (FaultKind.SINGULAR,), _describe)


def _describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"the {fault.name} in `{event.label}` has an infinite derivative at zero, and nothing keeps its "
        "operand away from there",
        "add a small positive number under it, use `wp.length`, or branch around zero with `if`",
        "",
    )
