"""WL204 host-round-trip: an active value goes through the host on its way to the objective."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled
from warplint.model import Counterfactual, Finding, ProbeRequest, Related
from warplint.static.said import says_meant

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.values import Buffer, Carried
    from warplint.static.kernels.summary import Site

RULE = "WL204"


@check(RULE, order=82)
def host_round_trip(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Kernel arguments and arrays that the host makes of the values of an active array."""
    if not graph.objective_known or graph.recording.custom:
        return  # the host may have recorded the adjoint of what it computes
    for carried, back, how in _returns(graph):
        if not _is_active(graph, carried.base) or not claims.first(RULE, carried.read):
            continue
        name = spelled(carried.base)
        if says_meant(carried.read, (), name) or says_meant(back):
            continue
        yield Finding(
            RULE,
            f"the values of `{name}` are read by the host and go on as {how}: the gradient stops there",
            location(carried.read),
            (Related(location(back), "handed to the tape's kernels here"), *backward_notes(graph)),
            name,
            "hand the array to the kernel instead, or say in a comment that this is detached",
            ProbeRequest(Counterfactual.HOLD_READ, (location(carried.read),)),
        )


def _returns(graph: ScopeGraph) -> Iterator[tuple[Carried, Site, str]]:
    """Where what the host made of an array comes back into something the objective depends on."""
    for index, event in enumerate(graph.events):
        for name, carried in event.host.items():
            if graph.feeds_objective(index):
                what = (
                    f"the argument `{name}` of `{event.label}`" if event.kind == "launch" else "new contents"
                )
                yield carried, event.site, what
    for event in graph.recording.prelude:
        for carried in event.host.values():
            # An optimized array that gets new contents is updated, not computed.
            if any(graph.starts_useful(b.buffer) and not b.buffer.consumed for b in event.bindings.values()):
                yield carried, event.site, "the contents of an array"
    for buffer in graph.buffers.values():
        made = buffer.carried
        if made is not None and not buffer.consumed and graph.starts_useful(buffer):
            if made.base.consumed and made.base.name == buffer.name:
                continue  # a parameter that is replaced by its update, whichever gradient that takes
            yield made, buffer.site, f"the array `{spelled(buffer)}`"


def _is_active(graph: ScopeGraph, buffer: Buffer) -> bool:
    """Whether an array is optimized, or computed on this tape from one that is."""
    return (buffer.consumed and buffer.requires_grad is True) or graph.becomes_varied(buffer)
