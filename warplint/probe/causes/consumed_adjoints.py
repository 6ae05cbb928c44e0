"""WL504: the gradient of a computed array is read, which keeps none."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class ConsumedAdjoints(Naming):
    kind = Counterfactual.RETAIN

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        buffer = cause["buffer"] or "an array"
        return Named(
            rule="WL504",
            message=(
                f"the gradient of `{buffer}` is read, but `{buffer}` is computed on the tape and allocated "
                "without retain_grad: the adjoint of what computed it has used the gradient up"
            ),
            location=location(cause["stack"], paths),
            related=(Related(location(cause["read"], paths), "the gradient is read here"),)
            if cause["read"]
            else (),
            help=f"allocate `{buffer}` with retain_grad=True, or read the gradient of what it is made from",
            removal=f"`{buffer}` allocated with retain_grad",
        )
