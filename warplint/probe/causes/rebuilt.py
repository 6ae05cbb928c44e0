"""WL106: a hash grid or a mesh is built anew before the backward pass asks it again."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class Rebuilt(Naming):
    kind = Counterfactual.REBUILD

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        what, done = ("mesh", "refitted") if cause["structure"] == "Mesh" else ("hash grid", "built anew")
        return Named(
            rule="WL106",
            message=(
                f"this {what} is {done} before the backward pass of launches that asked it: their adjoints "
                "find other neighbours than they did"
            ),
            location=location(cause["stack"], paths),
            related=(),
            help=f"do this after backward(), or keep a {what} for every recording",
            removal=f"{what} as the launches found it",
        )
