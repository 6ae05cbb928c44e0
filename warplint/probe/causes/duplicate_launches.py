"""WL505: a launch is recorded twice, into an array that keeps its gradient."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Finding, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class DuplicateLaunches(Naming):
    kind = Counterfactual.DROP_DUPLICATE

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        buffer = f"`{cause['buffer']}`" if cause["buffer"] else "its output"
        here, first = location(cause["stack"], paths), location(cause["first"], paths)
        return Named(
            rule="WL505",
            message=(
                f"`{cause['kernel']}` is recorded a second time with the same arguments, and {buffer} keeps "
                "its gradient: both launches hand the same adjoint on"
            ),
            location=here,
            related=(Related(first, "recorded before here"),) if first != here else (),
            help=f"launch `{cause['kernel']}` once, or allocate {buffer} without retain_grad",
            removal=f"second launch of `{cause['kernel']}` taken off the tape",
        )

    def happened(self, finding: Finding, cause: dict[str, Any]) -> bool:
        return bool(cause["retained"])
