"""WL201: an array between the parameter and the objective carries no gradient."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, by, location
from warplint.probe.facts import Paths
from warplint.probe.intent import says_detached


class MissingGradient(Naming):
    kind = Counterfactual.SET_REQUIRES_GRAD

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        buffer = cause["buffer"] or "an array"
        writer, reader = cause["writer"], cause["reader"]
        if cause["view_of"] is not None or writer["kernel"] is None:
            return self.describe_view(cause, buffer, paths)
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

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        return any(says_detached(frame, paths) for frame in cause["stack"][:3])

    def describe_view(self, cause: dict[str, Any], buffer: str, paths: Paths) -> Named:
        owner, reader = cause["view_of"] or "another array", cause["reader"]
        related = []
        if cause["writer"]["stack"]:
            related.append(Related(location(cause["writer"]["stack"], paths), f"`{owner}` is allocated here"))
        if reader["stack"]:
            related.append(Related(location(reader["stack"], paths), f"used here, by {by(reader['kernel'])}"))
        return Named(
            rule="WL201",
            message=(
                f"`{buffer}` shares the memory of `{owner}` but not its gradient: "
                f"what {by(reader['kernel'])} sends back is lost"
            ),
            location=location(cause["stack"], paths),
            related=tuple(related),
            help=f"take the view after `{owner}` requires grad, or pass grad= with the pointer",
            removal=f"`{buffer}` given its part of the gradient of `{owner}`",
        )
