"""What to look at when the gradients are right and training still fails."""

from __future__ import annotations

from typing import Any


def too_long_a_step(step: dict[str, Any] | None) -> str:
    """The optimizer's step, if it overshoots."""
    if step is None or not step["downhill"] or step["after"] <= 1.01 * abs(step["before"]):
        return ""  # (an objective that is not finite any more is no smaller)
    return (
        f"; the first step goes downhill but too far, from {step['before']:.4g} to {step['after']:.4g}: look "
        "at the learning rate, not at the gradient"
    )


MOVED = 0.02
"""Relative change of the objective that tells a solver that was stopped early."""
SETTLED = 0.2
"""Share of that change which the second half of the further turns may still bring."""


def stopped_early(row: dict[str, Any]) -> str | None:
    """What WL508 says of a solver whose further turns move the objective, and come to an end."""
    own, before, solved = row["objectives"]
    if abs(solved - own) <= MOVED * max(abs(own), abs(solved)):
        return None
    if abs(solved - before) > SETTLED * abs(solved - own):
        return None  # it goes on and on: no solver, or one that diverges
    return (
        f"with {row['most']} turns instead of {row['turns']} the objective goes from {own:.4g} to "
        f"{solved:.4g}: the gradient is right for the unfinished iteration, not for the solution"
    )


def drawn_anew(step: dict[str, Any] | None) -> str | None:
    """What WL510 says of an objective that changes by itself."""
    if step is None or step["same"] or not step["drawn"]:
        return None
    return (
        "random numbers are drawn anew in every iteration: at the same parameters the objective is "
        f"{step['after']:.4g} and then {step['next']:.4g}, so differences between iterations measure noise"
    )
