"""WL202 backward-disabled: a kernel on the way to the objective has no backward code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, backward_notes, check, location, statements
from warplint.model import Counterfactual, Finding, Location, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.kernels.summary import KernelSummary

RULE = "WL202"


@check(RULE, order=85)
def backward_disabled(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """Recorded kernels without backward code through which a derivative would go."""
    if not graph.objective_known:
        return
    for index, event in enumerate(graph.events):
        kernel = event.effect
        if kernel.backward or not event.recorded or kernel.site is None or not graph.passes(index):
            continue
        cause = kernel.switch or kernel.site
        if not claims.first(RULE, cause):
            continue
        if kernel.switch is None:
            how, place = "is declared with enable_backward=False", _declaration(kernel)
        else:
            how, place = "has no backward code: it is turned off here", location(cause)
        yield Finding(
            RULE,
            f"`{kernel.name}` {how}, but the gradient of the objective has to pass through it",
            place,
            (
                Related(location(event.site), f"`{kernel.name}` is launched on the tape here"),
                *backward_notes(graph),
            ),
            None,
            "enable the backward code of the kernels on the way to the loss",
            ProbeRequest(
                Counterfactual.ENABLE_BACKWARD,
                (_declaration(kernel),) if kernel.switch is None else statements([cause]),
            ),
        )


def _declaration(kernel: KernelSummary) -> Location:
    """The lines from the first decorator to the name of a kernel."""
    assert kernel.site is not None
    module, node = kernel.site.module, kernel.site.node
    first = module.location(node.decorators[0]) if node.decorators else module.location(node)
    name = module.location(node.name)
    return Location(first.file, first.line, first.column, name.line, name.end_column)
