"""WL403 replay-side-effect: the backward pass claims an index from a counter once more."""

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

RULE = "WL403"
KINDS = (FaultKind.CLAIMED,)


@check(RULE, order=6)
def replay_side_effect(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Indices that come from an atomic counter and choose an element with a derivative."""
    yield from fault_findings(graph, claims, RULE, KINDS, describe)


def describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"`{event.label}` uses the value claimed from the counter `{fault.name}` as an index: its backward "
        "pass does not get the same value again",
        "claim it in a @wp.func with a @wp.func_replay that reads the value the forward pass has stored",
        "",
    )
