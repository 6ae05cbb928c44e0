"""Faults of kernels that nothing in the tree records, and custom adjoints that nothing reaches.

Whether a derivative ever passes through such a kernel is not known. So these findings are kept apart:
they are only said where the kernel's adjoint is shown to be wrong on arguments made up for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warplint.checks import (
    wl301_in_place_multiply,
    wl302_component_reassignment,
    wl303_dynamic_loop_value,
    wl304_overflow_in_where,
    wl401_adjoint_assigns,
    wl402_adjoint_mismatch,
    wl403_replay_side_effect,
)
from warplint.checks.base import location
from warplint.model import Counterfactual, Finding, Location, ProbeRequest, Related
from warplint.versions import concern

if TYPE_CHECKING:
    from warplint.static.kernels.summary import Fault, KernelSummary
    from warplint.versions import Version

__all__ = ["alone_findings", "custom_adjoint"]

_RULES: tuple[Any, ...] = (
    wl302_component_reassignment,
    wl303_dynamic_loop_value,
    wl304_overflow_in_where,
    wl401_adjoint_assigns,
    wl402_adjoint_mismatch,
    wl403_replay_side_effect,
)


@dataclass(frozen=True)
class _Kernel:
    """Stands for the launch that there is none of."""

    label: str


def alone_findings(summary: KernelSummary, warp: Version | None = None) -> Iterator[Finding]:
    """What may be wrong with the adjoint of one kernel, whatever is done with it."""
    if not summary.backward:
        return
    for rule in _RULES:
        for fault in summary.faults:
            if fault.kind in rule.KINDS and concern(fault.versions, warp):
                yield _about_fault(rule, summary, fault)
    for item in summary.multiplies:
        factors = " and ".join(f"`{p}`" for p in sorted(item.factors))
        yield Finding(
            wl301_in_place_multiply.RULE,
            f"`{summary.name}` multiplies `{item.path}` in place by a factor that depends on {factors}: "
            "its gradient needs the value before the write",
            location(item.site),
            (),
            item.path,
            f"write the product to another array instead of back into `{item.path}`",
            _request(summary),
        )


def _about_fault(rule: Any, summary: KernelSummary, fault: Fault) -> Finding:
    message, help_text, origin = rule.describe(_Kernel(summary.name), fault)
    place, start = location(fault.site), location(fault.origin)
    related: tuple[Related, ...] = ()
    if origin and (start.file, start.line) != (place.file, place.line):
        related = (Related(start, origin),)
    return Finding(rule.RULE, message, place, related, fault.name, help_text, _request(summary))


def _request(summary: KernelSummary) -> ProbeRequest:
    return ProbeRequest(Counterfactual.REPLACE_ADJOINT, kernel=summary.name, kernel_file=summary.file)


def custom_adjoint(name: str, place: Location) -> Finding:
    """A custom adjoint at ``place``, which may or may not be the derivative of its function."""
    return Finding(
        wl402_adjoint_mismatch.RULE,
        f"the custom adjoint of `{name}` is not the derivative of the function",
        place,
        (),
        name,
        "differentiate the function again, and accumulate into every argument",
        ProbeRequest(Counterfactual.REPLACE_ADJOINT, kernel_file=place.file),
    )
