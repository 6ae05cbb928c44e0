"""Backward passes that are given neither a loss nor a seed."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from ..objectives import seeds_of, unseeded_scalar
from .base import CounterfactualRun, Kind


class DeadObjective(Kind):
    """Begins the selected backward calls with the number that their tape ends with."""

    NAME = "dead-objective"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: dict[tuple, dict[str, Any]] = {}

    def before(self, event: Event) -> None:
        if event.kind != "backward" or not self.run.started or self.run.passes:
            return
        scalar = unseeded_scalar(event) if not seeds_of(event, set(), frozenset()) else None
        if scalar is None:
            return
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        key = (self.NAME, file, line)
        self.causes[key] = {"key": key, "stack": event.stack, "buffer": self.run.name_of(scalar)}
        if self.removes(key):
            arrays.memory(scalar.grad)[...] = 1.0

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())
