"""WL204: a value passes through host code between the parameter and the objective."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Finding, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths
from warplint.probe.intent import FRAMES, says_meant, says_truncated


class HostRead(Naming):
    kind = Counterfactual.HOLD_READ

    def matches(self, finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
        if cause["passed"] is None:
            return super().matches(finding, cause, paths)
        request, frames = finding.request, paths.frames(cause["passed"] or ())
        return (
            request is not None
            and request.counterfactual is Counterfactual.HOLD_CARRIED
            and any(site.covers(file, line) for site in request.sites for file, line in frames)
        )

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        here = location(cause["stack"], paths)
        array = f"`{cause['array']}`" if cause["array"] else "an array"
        related: tuple[Related, ...] = ()
        if cause["born"]:
            place = location(cause["born"], paths)
            if place != here:
                related = (Related(place, f"{array} is allocated here"),)
        if cause["passed"]:
            return Named(
                rule="WL503",
                message=f"the state goes through the host from one tape to the next ({array}), but each "
                "backward pass ends where its own tape began: the gradient leaves out what a step does to "
                "the later ones",
                location=location(cause["passed"], paths),
                related=(Related(here, f"{array} is read here"),),
                help="record all steps on one tape and go back over it once, or hand the adjoint of the "
                "state on; if it is meant, say so (detach, truncated) where the tape is made",
                removal=f"what the host reads of {array} held constant in the finite difference",
            )
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
        if any(says_truncated(frame, paths) for frame in (cause["passed"] or ())[:FRAMES]):
            return True
        if cause.get("lagging"):
            return True  # what a later iteration still takes from this version is a constant
        return says_meant(cause["stack"], cause["name"], paths)
