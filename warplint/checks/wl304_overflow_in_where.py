"""WL304 overflow-in-where: an operand is infinite where ``where`` does not select it."""

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

RULE = "WL304"
KINDS = (FaultKind.WHERE,)


@check(RULE, order=8)
def overflow_in_where(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Operands of ``wp.where`` that its condition is meant to keep away from a singular point."""
    yield from fault_findings(graph, claims, RULE, KINDS, describe)


def describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"`wp.where` in `{event.label}` evaluates its {fault.name} operand also where it is not selected: "
        "an infinite derivative there times the adjoint zero is NaN",
        "use `if` or a conditional expression, or clamp the operand before it is used",
        f"the {fault.name} that may be infinite",
    )
