"""Findings about kernels whose own adjoint is wrong: shared by the rules WL110, WL3xx and WL4xx."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, location, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.events import Event
    from warplint.static.kernels.summary import Fault, FaultKind

__all__ = ["fault_findings"]


def fault_findings(
    graph: ScopeGraph,
    claims: Claims,
    rule: str,
    kinds: tuple[FaultKind, ...],
    describe: Callable[[Event, Fault], tuple[str, str, str]],
    keep: Callable[[Fault], bool] = lambda fault: True,
    counterfactual: Counterfactual = Counterfactual.REPLACE_ADJOINT,
) -> Iterator[Finding]:
    """One finding for each variable (or place) that is at fault, however many launches reach it.

    ``describe`` gives the message, the help and what is to be said about the fault's origin.
    """
    faults = [(e, f) for e, f in graph.faults if f.kind in kinds and keep(f)]
    for event, fault in faults:
        same = [(e, f) for e, f in faults if f.site == fault.site or _alike(f, fault)]
        if not claims.first(rule, fault.site, *(f.site for _, f in same)):
            continue
        message, help_text, origin = describe(event, fault)
        place, start = location(fault.site), location(fault.origin)
        related = [Related(location(event.site), f"`{event.label}` is launched on the tape here")]
        if origin and (start.file, start.line) != (place.file, place.line):
            related.insert(0, Related(start, origin))
        kernels = {(e.effect.name, e.effect.file) for e, _ in same}
        name, file = next(iter(kernels)) if len(kernels) == 1 else (None, None)
        yield Finding(
            rule,
            message,
            place,
            (*related, *backward_notes(graph)),
            fault.name,
            help_text,
            ProbeRequest(
                counterfactual,
                statements(e.statement for e, _ in same),
                kernel=name,
                kernel_file=file,
            ),
        )


def _alike(one: Fault, other: Fault) -> bool:
    """Whether two statements are the same mistake with one variable."""
    return (
        one.kind is other.kind
        and one.name == other.name
        and one.site.module is other.site.module
        and one.origin.node is other.origin.node
    )
