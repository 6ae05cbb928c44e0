"""Arrays with ``retain_grad=True`` that are written more than once on a tape."""

from __future__ import annotations

from typing import Any

from warp._src import types as wptypes

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind


class RetainedGradients(Kind):
    """Clears ``retain_grad`` on the arrays of the selected allocation sites."""

    NAME = "retained-gradient"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: dict[tuple, dict[str, Any]] = {}

    def start(self) -> None:
        for array in list(self.stream.births.live.values()):
            self.clear(array)

    def before(self, event: Event) -> None:
        if not self.run.started:
            return
        for _, array in event.arrays:
            self.clear(array)
        if event.target is not None and arrays.is_array(event.target):
            self.clear(event.target)
        if event.kind == "launch":
            for value in (*event.details["inputs"], *event.details["outputs"]):
                refresh(value)
        elif event.kind == "backward":
            self.look(event.details["tape"])

    def clear(self, array: Any) -> None:
        if getattr(array, "_retain_grad", False):
            array._warplint_retained = True
            born = arrays.birth(arrays.root(array))
            if born is not None and self.removes((self.NAME, born.family)):
                array.retain_grad = False
                array.ctype = None

    def look(self, tape: Any) -> None:
        """Files the retained arrays that several operations of the tape were handed."""
        uses: dict[int, list[Any]] = {}
        for launch in tape.launches:
            if callable(launch):
                continue
            for array in {id(a): a for _, a in arrays.walk([*launch[3], *launch[4]])}.values():
                if getattr(array, "_warplint_retained", False):
                    uses.setdefault(id(arrays.root(array)), [arrays.root(array)]).append(launch[0].key)
        for base, *kernels in uses.values():
            born = arrays.birth(base)
            if born is None or len(kernels) < 2:
                continue
            key = (self.NAME, born.family)
            self.causes.setdefault(
                key,
                {
                    "key": key,
                    "stack": born.stack,
                    "buffer": self.stream.sites.label(born.stack),
                    "kernels": list(dict.fromkeys(kernels))[:4],
                },
            )

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def refresh(value: Any) -> None:
    """A struct keeps its own description of each array, the flag included: assigned again, it is new."""
    if wptypes.is_struct(value):
        for field in value._cls.vars:
            held = getattr(value, field, None)
            if getattr(held, "_warplint_retained", False):
                setattr(value, field, held)
            refresh(held)
