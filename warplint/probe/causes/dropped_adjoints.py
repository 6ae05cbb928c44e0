"""WL509: the adjoint of a state at a segment's start is not handed to the segment before."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, listed, location
from warplint.probe.facts import Paths


class DroppedAdjoints(Naming):
    kind = Counterfactual.HAND_ON

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        states = listed([n for n in cause["buffers"] if n] or ["a state"])
        ends = [n for n in cause["ends"] if n]
        what = "is seeded with another adjoint than" if cause["wrong"] else "is given no adjoint for"
        related = (Related(location(cause["begun"], paths), "the later segment begins with it here"),)
        return Named(
            rule="WL509",
            message=(
                f"a later segment begins with {states}, but this backward pass over the segment before "
                f"{what} it: the gradient leaves out what goes through {states}"
            ),
            location=location(cause["stack"], paths),
            related=related if cause["begun"] else (),
            help=f"seed {listed(ends) if ends else 'the end of this segment'} with the gradient of {states} "
            "too (grads={...})",
            removal=f"adjoint of {states} handed on to the segment before",
        )
