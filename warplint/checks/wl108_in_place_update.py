"""WL108 in-place-update: a kernel overwrites an element whose old value its own adjoint needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.checks.kernel_faults import fault_findings
from warplint.model import Counterfactual, Finding, ProbeRequest, Related
from warplint.static.kernels.summary import FaultKind

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.events import Event
    from warplint.static.kernels.summary import Fault

RULE = "WL108"


@check(RULE, order=70)
def in_place_update(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Nonlinear updates and limits that a kernel writes back to where it read."""
    reported = {e.site for e, _ in graph.multiplies}
    reported |= {h.writer.site for h in graph.hazards if claims.taken(h.buffer, RULE)}
    events = [
        (e, item)
        for e, item in graph.updates
        if e.site not in reported and not claims.taken(e.bindings[item.path].buffer, RULE)
    ]
    for event, item in events:
        binding = event.bindings[item.path]
        claims.take(binding.buffer, RULE)
        claims.launches[event.site] = RULE
        if not claims.first(RULE, event.effect.site):
            continue
        name = spelled(binding.buffer, binding)
        read = location(item.needs[0].read.site)
        place = location(item.write.site)
        where = f"read at line {read.line}" if read.line != place.line else "read in the same statement"
        message = (
            f"`{event.label}` updates `{item.path}` in place (`{name}` at line {location(event.site).line}), "
            f"but its own backward pass needs the value before the write ({where})"
        )
        sites = [e.statement for e, other in events if other.write.site == item.write.site]
        yield Finding(
            RULE,
            message,
            place,
            (
                Related(location(event.site), f"`{event.label}` is launched on the tape here"),
                *backward_notes(graph),
            ),
            name,
            f"write the result to another array instead of back into `{item.path}`",
            ProbeRequest(
                Counterfactual.RESTORE_VALUES,
                statements(sites),
                kernel=event.effect.name,
                kernel_file=event.effect.file,
            ),
        )
    yield from fault_findings(graph, claims, RULE, (FaultKind.NEIGHBOUR,), _describe)


def _describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"`{event.label}` changes elements of `{fault.name}` that other threads of the same launch read: its "
        "backward pass does not find the values that were read",
        f"read from one array and write the result to another instead of back into `{fault.name}`",
        "read here by other threads",
    )
