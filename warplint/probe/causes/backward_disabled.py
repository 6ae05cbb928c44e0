"""WL202: backward code is disabled for a kernel between the parameter and the objective."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, location
from warplint.probe.facts import Paths
from warplint.probe.intent import says_detached


class BackwardDisabled(Naming):
    kind = Counterfactual.ENABLE_BACKWARD

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        here = location(cause["stack"], paths)
        kernels = " and ".join(f"`{k}`" for k in cause["kernels"][:3])
        more = len(cause["kernels"]) - 3
        kernels += f" and {more} more" if more > 0 else ""
        launch = cause["launch"]
        related: tuple[Related, ...] = ()
        if launch is not None and launch["stack"]:
            place = location(launch["stack"], paths)
            if place != here:
                related = (Related(place, f"`{launch['kernel']}` is launched on the tape here"),)
        if cause["how"] == "library":
            return Named(
                rule="WL203",
                message=f"the library's kernel {kernels} has no backward code: the gradient stops here",
                location=here,
                related=(),
                help="compute this with a kernel of your own, or record its adjoint with tape.record_func()",
                removal=f"{kernels} compiled with backward code",
            )
        where = {
            "kernel": "is declared with enable_backward=False",
            "module": "belongs to a module whose options disable its backward code",
            "global": "is defined while wp.config.enable_backward is off",
        }[cause["how"]]
        if len(cause["kernels"]) > 1:
            where = where.replace("is ", "are ", 1).replace("belongs", "belong")
        return Named(
            rule="WL202",
            message=f"{kernels} {where}, but the gradient of the objective has to pass through: "
            "its backward pass is skipped",
            location=here,
            related=related,
            help="enable the backward code of the kernels on the way to the loss",
            removal=f"{kernels} compiled with backward code",
        )

    def meant(self, cause: dict[str, Any], paths: Paths) -> bool:
        return any(says_detached(frame, paths) for frame in cause["stack"][:1])
