"""WL503: every tape is gone back over on its own, while the state is carried from one to the next."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual
from warplint.probe.causes.base import Named, Naming, listed, location
from warplint.probe.facts import Paths
from warplint.probe.intent import FRAMES, says_truncated


class TruncatedHorizon(Naming):
    kind = Counterfactual.HOLD_CARRIED

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        return any(says_truncated(frame, paths) for frame in cause["stack"][:FRAMES])

    def note(self, cause: dict[str, Any], paths: Paths) -> str:
        state = listed([n for n in cause["buffers"] if n] or ["the state"])
        return (
            f"the gradient is that of {cause['windows']} windows with {state} constant at their start, "
            "as the code says"
        )

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        state = listed([n for n in cause["buffers"] if n] or ["the state"])
        return Named(
            rule="WL503",
            message=(
                f"the state {state} is carried over {cause['windows']} tapes, but each backward pass ends "
                "where its own tape began: the gradient leaves out what a step does to the later ones"
            ),
            location=location(cause["stack"], paths),
            related=(),
            help="record all steps on one tape and go back over it once, or hand the adjoint of the state "
            "on; if it is meant, say so (detach, truncated) where the tape is made",
            removal=f"{state} held constant at the start of every tape",
        )
