"""WL506 tape-reentered: a tape is entered again with its earlier launches still on it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check_loops, location, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related

if TYPE_CHECKING:
    from warplint.static.loops import Loops

RULE = "WL506"


@check_loops(RULE, order=20)
def tape_reentered(loops: Loops, claims: Claims) -> Iterator[Finding]:
    """Tapes that were gone back over and then entered again without reset()."""
    for replayed in loops.replayed:
        if not claims.first(RULE, replayed.tape.site):
            continue
        entered = location(replayed.enter.site)
        yield Finding(
            RULE,
            f"this tape is entered again on line {entered.line} with the launches of earlier passes still on "
            "it, and backward() goes back over them once more",
            location(replayed.tape.site),
            (Related(entered, "entered again here"),),
            None,
            "make a new tape for every iteration, or call tape.reset() instead of tape.zero()",
            ProbeRequest(Counterfactual.DROP_REPLAYED, statements([replayed.tape.site])),
        )
