"""WL503 truncated-horizon: every tape is gone back over on its own while the state goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check_loops, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.loops import Loops

RULE = "WL503"


@check_loops(RULE, order=40)
def truncated_horizon(loops: Loops, claims: Claims) -> Iterator[Finding]:
    """Tapes that begin with what an earlier tape left, for the same values of a parameter."""
    for cut in loops.truncated:
        if not claims.first(RULE, cut.backward.site):
            continue
        state, parameter = spelled(cut.state), spelled(cut.parameter)
        yield Finding(
            RULE,
            f"`{state}` is carried from one tape to the next, but each backward pass ends where its own tape "
            f"began: the gradient of `{parameter}` leaves out what a step does to the later ones",
            location(cut.backward.site),
            (Related(location(cut.enter.site), "each tape begins here"),),
            state,
            "record all steps on one tape and go back over it once, or hand the adjoint of the state on",
            ProbeRequest(Counterfactual.HOLD_CARRIED, statements([cut.backward.statement])),
        )
