"""WL502: the gradient is read when it is not (or no longer) there."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths

_RESETS = {
    "tape-zero": "tape.zero()",
    "tape-reset": "tape.reset()",
    "zero": "zero_()",
    "fill": "fill_()",
    "assign": "assign()",
    "backward": "the next backward()",
}


class StaleReads(Naming):
    kind = Counterfactual.FRESH_GRADIENT

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        name = f"`{cause['parameter']}`" if cause["parameter"] else "the parameter"
        how, by = cause["how"], cause["by"]
        culprit = _RESETS.get(by[0], "a later operation") if by else "a later operation"
        related = (Related(location(by[1], paths), f"{culprit} here"),) if by and by[1] else ()
        if how == "view":
            message = (
                f"on the CPU numpy() is a view of the gradient of {name}, and {culprit} changes it before it "
                "is used"
            )
            help_text = "take a copy, grad.numpy().copy(), or reset the gradient after it was used"
        elif how == "old":
            message = (
                f"the gradient read here belongs to an array that {name} has taken the place of: the passes "
                "since then have not reached it"
            )
            help_text = f"read the gradient of {name} itself, or keep the array and assign to it"
        elif how == "early":
            message = f"the gradient of {name} is read before the backward pass that computes it"
            help_text = "read the gradient after backward()"
        else:
            message = f"the gradient of {name} is read after {culprit} has emptied it"
            help_text = "read the gradient before it is reset"
        return Named(
            rule="WL502",
            message=message,
            location=location(cause["stack"], paths),
            related=related,
            help=help_text,
            removal=f"gradient of {name} as the backward pass left it",
        )
