"""WL205 piecewise-constant: a rounded value on the way to the objective has no derivative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check
from warplint.checks.kernel_faults import fault_findings
from warplint.model import Counterfactual, Finding
from warplint.static.kernels.summary import FaultKind

if TYPE_CHECKING:
    from warplint.static.graph import ScopeGraph
    from warplint.static.host.events import Event
    from warplint.static.kernels.summary import Fault

RULE = "WL205"


@check(RULE, order=92)
def piecewise_constant(graph: ScopeGraph, claims: Claims) -> Iterator[Finding]:
    """``frac``, whose adjoint is wrong, and functions whose derivative is rightly zero."""
    yield from fault_findings(graph, claims, RULE, (FaultKind.FRACTION,), _fraction)
    yield from fault_findings(
        graph, claims, RULE, (FaultKind.STEPS,), _steps, counterfactual=Counterfactual.NOTHING
    )


def _fraction(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"the derivative of frac in `{event.label}` is one, but Warp's adjoint of it is zero",
        "write `x - wp.floor(x)`",
        "",
    )


def _steps(event: Event, fault: Fault) -> tuple[str, str, str]:
    return (
        f"the result of {fault.name} in `{event.label}` is piecewise constant: its gradient is zero, "
        "and that is right",
        "if something is to be learned through it, replace it by a smooth function or by an estimate of its "
        "derivative (straight-through)",
        "",
    )
