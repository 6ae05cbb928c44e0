"""WL208: a backward pass begins with nothing."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class DeadObjective(Naming):
    kind = Counterfactual.SEED_LOSS

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        name = cause["buffer"] or "loss"
        return Named(
            rule="WL208",
            message="backward() is given neither a loss nor a seed: it begins with zero and ends with zero",
            location=location(cause["stack"], paths),
            related=(),
            help=f"name the loss: backward({name})",
            removal=f"backward() begun with `{name}`",
        )
