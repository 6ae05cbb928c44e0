"""WL502 stale-gradient: a gradient is read when it is not, or no longer, there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check_loops, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest, Related
from warplint.static.loops import EARLY, VIEW

if TYPE_CHECKING:
    from warplint.static.host.life import Step
    from warplint.static.loops import Loops

RULE = "WL502"

_WORDS = {"zero": "tape.zero()", "reset": "tape.reset()", "backward": "the backward pass runs"}


@check_loops(RULE, order=30)
def stale_gradient(loops: Loops, claims: Claims) -> Iterator[Finding]:
    """Reads before the pass, after a reset, and views that are used after one."""
    for stale in loops.stale:
        if not claims.first(RULE, stale.step.site):
            continue
        name = spelled(stale.buffer)
        culprit, place = _culprit(stale.by), stale.step.site
        related: tuple[Related, ...] = ()
        if stale.by is not None:
            related = (Related(location(stale.by.site), f"{culprit} here"),)
            if stale.how != VIEW:
                place = stale.step.place_beside(stale.by)
        if place is not stale.step.site:
            related = (Related(location(stale.step.site), "the gradient is read here"), *related)
        if stale.how == EARLY:
            message = f"the gradient of `{name}` is read before the backward pass that computes it"
            help_text = "read the gradient after backward()"
        elif stale.how == VIEW:
            message = (
                f"on the CPU numpy() is a view of the gradient of `{name}`, and {culprit} changes it before "
                "it is used"
            )
            help_text = "take a copy, grad.numpy().copy(), or reset the gradient after it was used"
        else:
            message = f"the gradient of `{name}` is read after {culprit} has emptied it"
            help_text = "read the gradient before it is reset"
        yield Finding(
            RULE,
            message,
            location(place),
            related,
            name,
            help_text,
            ProbeRequest(Counterfactual.FRESH_GRADIENT, statements([stale.step.statement])),
        )


def _culprit(step: Step | None) -> str:
    return _WORDS.get(step.kind, "a reset") if step is not None else "a reset"
