"""WL110 racing-store: many threads store different values into one element."""

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

RULE = "WL110"


@check(RULE, order=75)
def racing_store(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Plain stores to an element that does not depend on the thread, of values that do."""
    yield from fault_findings(graph, claims, RULE, (FaultKind.RACE,), _describe)


def _describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"all threads of `{event.label}` store different values into one element of `{fault.name}`: which "
        "of them stays is undefined, and the adjoint credits another",
        f"use `wp.atomic_add`, or give each thread an element of `{fault.name}` of its own",
        "",
    )
