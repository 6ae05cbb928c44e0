"""WL203: an operation between the parameter and the objective is on no tape."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Finding, Related
from warplint.probe.causes.base import Named, Naming, by, location
from warplint.probe.facts import Paths
from warplint.probe.intent import says_meant


class NotRecorded(Naming):
    kind = Counterfactual.RECORD

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        here = location(cause["stack"], paths)
        buffer = f"`{cause['buffer']}`" if cause["buffer"] else "an array"
        if cause["operation"] == "reduce":
            operation = f"wp.utils.{cause['kernel']}()"
        else:
            operation = by(cause["kernel"] or cause["operation"])
        reader = cause["reader"]
        related = []
        if reader is not None and reader["stack"]:
            place = location(reader["stack"], paths)
            if place != here:
                related.append(Related(place, f"used here, by {by(reader['kernel'])}"))
        if cause["how"] == "off the tape":
            why = "while no tape records"
            help_text = (
                "move it into the tape, or, if it is meant as a constant, say so in a comment (detached)"
            )
        elif cause["how"] == "record_tape=False":
            why = "with record_tape=False"
            help_text = "record the launch"
        elif cause["how"] == "Launch.launch()":
            why = "by a prepared launch, which no tape records,"
            help_text = "use wp.launch() for what the gradient has to pass through"
        elif cause["how"] == "indexed":
            operation, why = "a copy of an indexed array", "which no tape records"
            help_text = "pick the elements in a kernel instead"
        elif cause["operation"] == "library":
            operation, why = f"{cause['kernel']}()", "of Warp's library, which no tape records"
            help_text = "record what it does to adjoints with tape.record_func() (a solver: solve with the "
            help_text += "transposed matrix), or integrate into an array with requires_grad (output=)"
        else:
            why = "in a way that no tape records"
            help_text = "use a kernel instead, or record the adjoint with tape.record_func()"
        removal = f"{operation} recorded on the tape"
        if cause["operation"] == "library":
            removal = f"what {operation} makes held constant in the finite difference"
        return Named(
            rule="WL203",
            message=f"{buffer} is computed from the optimized values by {operation} {why}: "
            "the gradient stops there",
            location=here,
            related=tuple(related),
            help=help_text,
            removal=removal,
        )

    def happened(self, finding: Finding, cause: dict[str, Any]) -> bool:
        return False  # what cuts the way of no derivative is no hazard

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        # Who carries a state on from pass to pass, off every tape, wants no gradient through it.
        return bool(cause.get("running")) or says_meant(cause["stack"], cause["buffer"], paths)


class LibraryCalls(NotRecorded):
    kind = Counterfactual.HOLD_LIBRARY

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        return says_meant(cause["stack"], cause["buffer"], paths)
