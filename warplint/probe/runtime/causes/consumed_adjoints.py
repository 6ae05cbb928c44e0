"""The gradient of an array that is computed on the tape: the adjoint of what computed it uses it up."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind
from .retained_gradients import refresh


class ConsumedAdjoints(Kind):
    """Has the array whose gradient is read keep it (``retain_grad``)."""

    NAME = "consumed-adjoint"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: list[dict[str, Any]] = []

    def start(self) -> None:
        array = self.run.parameter
        if array is None or self.run.episode.leaf or getattr(array, "_retain_grad", False):
            return
        born = arrays.birth(array)
        if born is None:
            return
        key = (self.NAME, born.family)
        read = next(iter(self.run.episode.reads), None)
        self.causes = [
            {
                "key": key,
                "stack": born.stack,
                "buffer": self.run.name_of(array),
                "read": [list(read.name[:2])] if read is not None else [],
            }
        ]
        if self.removes(key):
            array.retain_grad = array._warplint_retained = True
            array.ctype = None

    def before(self, event: Event) -> None:
        """The structs of recorded launches are handed to their adjoints as they are."""
        if event.kind == "backward" and any(self.removes(c["key"]) for c in self.causes):
            for launch in event.details["tape"].launches:
                for value in () if callable(launch) else (*launch[3], *launch[4]):
                    refresh(value)

    def found(self) -> list[dict[str, Any]]:
        return self.causes
