"""WL109: before Warp 1.17 a copy's adjoint overwrites what other readers of its source contributed."""

from __future__ import annotations

from typing import Any

from warplint.model import Counterfactual, Related
from warplint.probe.causes.base import Named, Naming, by, location
from warplint.probe.facts import Paths


class CopiedAgain(Naming):
    kind = Counterfactual.ACCUMULATE_COPY

    def describe(self, cause: dict[str, Any], paths: Paths) -> Named:
        buffer = f"`{cause['buffer']}`" if cause["buffer"] else "an array"
        reader = cause["reader"]
        related = []
        if reader is not None and reader["stack"]:
            related.append(Related(location(reader["stack"], paths), f"used here, by {by(reader['kernel'])}"))
        return Named(
            rule="WL109",
            message=f"{buffer} is copied here and read again: before Warp 1.17 the adjoint of the copy "
            "overwrites what its other readers have contributed",
            location=location(cause["stack"], paths),
            related=tuple(related),
            help="copy with a kernel, let the copy be the last to read its source, or use Warp 1.17 or later",
            removal=f"the adjoint of the copy of {buffer} accumulated",
        )
