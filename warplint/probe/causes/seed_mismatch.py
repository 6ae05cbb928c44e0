"""WL507: the backward pass is seeded for another objective than the program reports."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Location, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths


class SeedMismatch(Naming):
    kind = Counterfactual.SEED_REPORTED

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        output = f"`{cause['buffer']}`" if cause["buffer"] else "the outputs"
        number = f"`{cause['number']}`"
        file, line = cause["number_line"]
        place = Location(paths.display(str(file)), int(line))
        if cause["factor"] is not None:
            times = 1.0 / cause["factor"]
            message = (
                f"{output} is seeded with ones, which is the derivative of its sum, but the program reports "
                f"the mean as {number}: the gradient is {times:.4g} times too large"
            )
            help_text = f"seed {output} with 1/{times:.4g}, or report the sum"
        else:
            message = (
                f"the seeds of {output} are constant, which is the derivative of its sum, but the program "
                f"reports another function of it as {number}"
            )
            help_text = (
                f"seed {output} with the derivative of {number}, or compute {number} by a kernel on the tape"
            )
        return Named(
            rule="WL507",
            message=message,
            location=location(cause["stack"], paths),
            related=(Related(place, f"{number} is reported here"),),
            help=help_text,
            removal=f"{output} seeded with the derivative of {number}",
        )
