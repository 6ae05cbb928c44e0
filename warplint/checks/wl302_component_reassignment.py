"""WL302 component-reassignment: the adjoint of an overwritten component is not cleared."""

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

RULE = "WL302"
KINDS = (
    FaultKind.COMPONENT,
    FaultKind.STRUCT_COMPONENT,
    FaultKind.UPDATE,
    FaultKind.FIELD,
    FaultKind.ELEMENT_PART,
)
_OPTION = "enable_vector_component_overwrites"


@check(RULE, order=6)
def component_reassignment(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Components of locals that are assigned again, and components of local structs' fields."""
    sites = [graph.recording.site, *(e.site for e in graph.events), *(e.statement for e in graph.events)]
    switched_on = any(_OPTION in text for text in {s.module.file.text for s in sites})

    def keep(fault: Fault) -> bool:
        cleared = switched_on or _OPTION in fault.site.module.file.text
        return fault.kind is not FaultKind.COMPONENT or not cleared

    yield from fault_findings(graph, claims, RULE, KINDS, describe, keep)


def describe(event: Event, fault: Fault) -> tuple[str, str, str]:
    name = fault.name
    if fault.kind is FaultKind.STRUCT_COMPONENT:
        return (
            f"`{event.label}` assigns a component of `{name}`, a field of a local struct: no derivative "
            "passes through such an assignment",
            f"make the whole vector first and assign `{name}` once",
            "",
        )
    if fault.kind is FaultKind.FIELD:
        return (
            f"`{event.label}` assigns `{name}`, a field of a local struct: before Warp 1.15 no derivative "
            "passes through such an assignment",
            "give the fields to the constructor of the struct, or use plain local variables",
            "",
        )
    if fault.kind is FaultKind.ELEMENT_PART:
        return (
            f"`{event.label}` assigns `{name}`, a part of an array element: before Warp "
            f"{fault.versions.rpartition('<')[2]} no derivative passes through such an assignment",
            "compute the whole element in a local variable and store it once",
            "",
        )
    if fault.kind is FaultKind.UPDATE:
        return (
            f"`{event.label}` computes a component of `{name}` from itself in place: its adjoint reads the "
            "value after the write",
            f"compute the component in a local variable and store the whole element of `{name}` once",
            "",
        )
    return (
        f"`{event.label}` assigns a component of `{name}` that already carries a derivative: what it held "
        "before receives the adjoint of the new value, too",
        f"build a new vector or matrix instead of assigning components of `{name}`, or set "
        f"`wp.config.{_OPTION} = True` before the kernel is compiled",
        "",
    )
