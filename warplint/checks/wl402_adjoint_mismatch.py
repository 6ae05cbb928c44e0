"""WL402 adjoint-mismatch: a custom adjoint is not the derivative of its function."""

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

RULE = "WL402"
KINDS = (FaultKind.ADJOINT_IGNORES,)


@check(RULE, order=6)
def adjoint_mismatch(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """What can be seen without numbers: a contribution that does not use the incoming adjoint."""
    yield from fault_findings(graph, claims, RULE, KINDS, describe)


def describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"the custom adjoint of `{fault.name}` adds a contribution that does not depend on the incoming "
        f"adjoint: what `{event.label}` does with the result is ignored",
        "multiply the contribution by the incoming adjoint (the last parameter)",
        f"the custom adjoint of `{fault.name}`",
    )
