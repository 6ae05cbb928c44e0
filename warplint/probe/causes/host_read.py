"""WL204: a value passes through host code between the parameter and the objective."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Finding, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths
from warplint.probe.intent import says_meant


class HostRead(Naming):
    kind = Counterfactual.HOLD_READ

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        here = location(cause["stack"], paths)
        array = f"`{cause['array']}`" if cause["array"] else "an array"
        related: tuple[Related, ...] = ()
        if cause["born"]:
            place = location(cause["born"], paths)
            if place != here:
                related = (Related(place, f"{array} is allocated here"),)
        return Named(
            rule="WL204",
            message=f"{array} is read by the host here, and what is made of it goes on into the objective "
            "as a constant: the gradient stops there",
            location=here,
            related=related,
            help="hand the array to the kernel instead, or say in a comment that this is detached",
            removal=f"what the host reads of {array} held constant in the finite difference",
        )

    def happened(self, finding: Finding, cause: dict[str, Any]) -> bool:
        return False  # what cuts the way of no derivative is no hazard

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        return says_meant(cause["stack"], cause["name"], paths)
