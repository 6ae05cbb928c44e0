"""WL109 copied-source-read-again: the adjoint of a copy does not accumulate (before Warp 1.17)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related
from warplint.versions import concern

if TYPE_CHECKING:
    from warplint.static.graph import Operation, ScopeGraph, Version
    from warplint.static.host.events import Event

RULE = "WL109"
VERSIONS = "<1.17"


@check(RULE, order=95)
def copied_source_read_again(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Recorded copies that are not the last to read their source."""
    if not concern(VERSIONS, graph.warp):
        return
    operations = list(graph.operations)
    for index, (copy, before, _) in enumerate(operations):
        if copy.kind != "copy" or not copy.recorded or before.get("source") not in graph.varied:
            continue
        source, target = copy.bindings["source"], copy.bindings["destination"]
        if claims.taken(target.buffer, RULE):
            continue
        reader = _read_again(graph, index, before["source"], operations)
        if reader is None or not claims.first(RULE, copy.site):
            continue
        name = spelled(source.buffer, source)
        yield Finding(
            RULE,
            f"`{name}` is copied by `{copy.label}` and read again by `{reader.label}`: before Warp 1.17 the "
            "adjoint of the copy overwrites what its other readers have contributed",
            location(copy.site),
            (Related(location(reader.site), f"read again here by `{reader.label}`"), *backward_notes(graph)),
            name,
            "copy with a kernel, let the copy be the last to read its source, or use Warp 1.17 or later",
            ProbeRequest(Counterfactual.ACCUMULATE_COPY, statements([copy.statement])),
        )


def _read_again(graph: ScopeGraph, index: int, version: Version, operations: list[Operation]) -> Event | None:
    """The first operation after a copy through which a derivative comes back to the copied contents."""
    for later in range(index + 1, len(operations)):
        event, seen, _ = operations[later]
        if event.recorded and any(v == version and graph.carries(later, p) for p, v in seen.items()):
            return event
    return None
