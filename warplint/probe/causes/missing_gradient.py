"""WL201: an array between the parameter and the objective carries no gradient."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, by, location
from warplint.probe.facts import Paths


class MissingGradient(Naming):
    kind = Counterfactual.SET_REQUIRES_GRAD

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        buffer = cause["buffer"] or "an array"
        writer, reader = cause["writer"], cause["reader"]
        related = []
        if writer["stack"]:
            related.append(
                Related(location(writer["stack"], paths), f"written here, by {by(writer['kernel'])}")
            )
        if reader["stack"]:
            related.append(Related(location(reader["stack"], paths), f"read here, by {by(reader['kernel'])}"))
        return Named(
            rule="WL201",
            message=(
                f"`{buffer}` is allocated without requires_grad but carries the derivative from "
                f"{by(writer['kernel'])} to {by(reader['kernel'])}: the gradient stops there"
            ),
            location=location(cause["stack"], paths),
            related=tuple(related),
            help=f"allocate `{buffer}` with requires_grad=True",
            removal=f"`{buffer}` allocated with requires_grad=True",
        )
