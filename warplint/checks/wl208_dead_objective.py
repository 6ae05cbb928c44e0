"""WL208 dead-objective: a backward pass begins with nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check_loops, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest

if TYPE_CHECKING:
    from warplint.static.loops import Loops

RULE = "WL208"


@check_loops(RULE, order=5)
def dead_objective(loops: Loops, claims: Claims) -> Iterator[Finding]:
    """``tape.backward()`` without a loss where no gradient was filled and no other tape went before."""
    for dead in loops.dead:
        if not claims.first(RULE, dead.backward.site):
            continue
        name = spelled(dead.last) if dead.last is not None else "loss"
        yield Finding(
            RULE,
            "backward() is given neither a loss nor a seed: it begins with zero and ends with zero",
            location(dead.backward.site),
            (),
            name,
            f"name the loss: backward({name})",
            ProbeRequest(Counterfactual.SEED_LOSS, statements([dead.backward.statement])),
        )
