"""WL206 integer-on-path: a value goes through something that cannot carry a derivative."""

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

RULE = "WL206"


@check(RULE, order=91)
def integer_on_path(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Values that atomic operations return, and in old versions elements picked by a ternary."""
    yield from fault_findings(graph, claims, RULE, (FaultKind.ATOMIC_RESULT,), _returned)
    yield from fault_findings(graph, claims, RULE, (FaultKind.PICKED,), _picked)


def _returned(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"`{event.label}` goes on with the value that {fault.name} returns, which carries no derivative",
        "read the array in a second kernel instead",
        "",
    )


def _picked(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"`{event.label}` picks `{fault.name}` by a conditional expression: before Warp 1.17 no derivative "
        "passes through that",
        f"load `{fault.name}` into a local variable first, or use `if`",
        "",
    )
