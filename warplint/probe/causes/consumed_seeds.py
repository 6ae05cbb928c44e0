"""WL502: a seed array that the first backward pass used up is handed to the next one."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class ConsumedSeeds(Naming):
    kind = Counterfactual.REFILL_SEED

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        seed = cause["seed"] or (f"{cause['buffer']}.grad" if cause["buffer"] else None)
        name = f"`{seed}`" if seed else "the seed"
        here = location(cause["stack"], paths)
        made = location(cause["born"], paths) if cause["born"] else here
        return Named(
            rule="WL502",
            message=(
                f"{name} was used up by an earlier backward pass (or emptied with its tape) and is handed to "
                "this one as it is: nothing flows back"
            ),
            location=here,
            related=(Related(made, f"{name} is made here, once"),) if made != here else (),
            help="fill the seed again before every backward pass",
            removal=f"{name} filled again before backward()",
        )
