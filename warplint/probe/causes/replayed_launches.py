"""WL506: a tape is entered again with its earlier launches still on it."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class ReplayedLaunches(Naming):
    kind = Counterfactual.DROP_REPLAYED

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        count = cause["launches"]
        what = f"{count} operation{'s' if count != 1 else ''}"
        here = location(cause["stack"], paths)
        entered = location(cause["entered"], paths)
        related = (Related(entered, "entered again here"),) if entered != here else ()
        return Named(
            rule="WL506",
            message=(
                f"this tape is entered again with {what} of earlier passes still on it, and backward() "
                "goes back over them once more"
            ),
            location=here,
            related=related,
            help="make a new tape for every iteration, or call tape.reset() instead of tape.zero()",
            removal=f"the {what} of earlier passes taken off the tape",
        )
