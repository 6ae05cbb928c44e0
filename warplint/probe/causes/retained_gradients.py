"""WL504: an array that keeps its gradient is written more than once."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class RetainedGradients(Naming):
    kind = Counterfactual.CLEAR_RETAIN

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        buffer = cause["buffer"] or "an array"
        return Named(
            rule="WL504",
            message=(
                f"`{buffer}` is allocated with retain_grad=True but written more than once: the adjoint of "
                "the last value stays and is handed to the earlier writes too"
            ),
            location=location(cause["stack"], paths),
            related=(),
            help=f"allocate `{buffer}` without retain_grad, or give every write an array of its own",
            removal=f"`{buffer}` allocated without retain_grad",
        )
