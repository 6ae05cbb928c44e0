"""WL207 native-without-adjoint: a function in native code has no adjoint."""

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

RULE = "WL207"


@check(RULE, order=5)
def native_without_adjoint(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Native functions that a derivative would have to go through."""
    yield from fault_findings(graph, claims, RULE, (FaultKind.NATIVE,), _describe)


def _describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"`{fault.name}` is native code without an adjoint, but `{event.label}` sends the derivative there",
        "give it an adj_snippet that adds to `adj_` of every argument",
        f"`{fault.name}` is called here",
    )
