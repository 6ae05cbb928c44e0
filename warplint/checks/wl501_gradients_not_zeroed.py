"""WL501 gradients-not-zeroed: a backward pass adds to what an earlier one left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplint.checks.base import Claims, check_loops, location, spelled, statements
from warplint.model import Counterfactual, Finding, ProbeRequest

if TYPE_CHECKING:
    from warplint.static.loops import Loops

RULE = "WL501"
_ZERO = ".zero()"


def _help(text: str) -> str:
    if _ZERO in text:
        return (
            "the tape.zero() that is there does not reach it: call it on the tape that ran backward, after"
            " the gradient has been used and before that tape is reset"
        )
    return "call tape.zero() (or zero the gradients) once the gradient has been used"


@check_loops(RULE, order=10)
def gradients_not_zeroed(loops: Loops, claims: Claims) -> Iterator[Finding]:
    """Gradients that were used, and not zeroed, before the next pass adds to them."""
    for kept in loops.kept:
        if not claims.first(RULE, kept.backward.site):
            continue
        name = spelled(kept.buffer)
        if kept.again:
            message = f"backward() is called again on the same recording, so the gradient of `{name}` doubles"
        elif kept.backward.kind == "adjoint":
            message = f"`{name}` still holds what an earlier pass left when this adjoint launch adds to it"
        else:
            message = (
                f"the gradient of `{name}` still holds what an earlier pass left when backward() adds to it"
            )
        yield Finding(
            RULE,
            message,
            location(kept.backward.site),
            (),
            name,
            _help(kept.backward.site.module.file.text),
            ProbeRequest(Counterfactual.ZERO_GRADIENTS, statements([kept.backward.statement])),
        )
