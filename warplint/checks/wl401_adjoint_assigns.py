"""WL401 adjoint-assigns: a custom adjoint does not accumulate into the adjoint of an argument."""

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

RULE = "WL401"
KINDS = (FaultKind.ADJOINT_ASSIGNS, FaultKind.ADJOINT_MISSES)


@check(RULE, order=6)
def adjoint_assigns(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Assignments to ``wp.adjoint`` of shared arguments, and arguments that are left out."""
    yield from fault_findings(graph, claims, RULE, KINDS, describe)


def describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    if fault.kind is FaultKind.ADJOINT_MISSES:
        return (
            f"this custom adjoint never accumulates into `wp.adjoint[{fault.name}]`, but `{event.label}` "
            f"passes a derivative through `{fault.name}`",
            f"add `wp.adjoint[{fault.name}] += …`",
            "",
        )
    return (
        f"the custom adjoint of `{fault.name}` assigns where it should accumulate: `{event.label}` uses the "
        "same argument elsewhere, and those contributions are lost",
        "write `+=` instead of `=`",
        f"the custom adjoint of `{fault.name}`",
    )
