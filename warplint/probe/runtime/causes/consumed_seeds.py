"""Seed arrays that an earlier backward pass has used up and that are handed on as they are."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind


class ConsumedSeeds(Kind):
    """Fills the seeds of the selected backward calls again with what they were first given."""

    NAME = "consumed-seed"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: dict[tuple, dict[str, Any]] = {}

    def before(self, event: Event) -> None:
        if not self.run.started or event.kind != "backward" or event.details.get("loss") is not None:
            return
        grads = event.details.get("grads")
        pairs = list(grads.items()) if grads else [(a, a.grad) for a in self.outputs(event)]
        for array, seed in pairs:
            given = arrays.used_up(seed) if arrays.is_array(seed) else None
            if given is None:
                continue
            file, line = event.stack[0][:2] if event.stack else ("?", 0)
            key = (self.NAME, file, line)
            born = arrays.birth(arrays.root(seed))
            self.causes.setdefault(
                key,
                {
                    "key": key,
                    "stack": event.stack,
                    "buffer": self.run.name_of(array),
                    "seed": self.run.name_of(seed) if grads else None,
                    "born": born.stack[:4] if born is not None and grads else (),
                },
            )
            if self.removes(key):
                memory = arrays.memory(seed)
                memory[...] = given.reshape(memory.shape).astype(memory.dtype)

    def outputs(self, event: Event) -> list[Any]:
        found: dict[int, Any] = {}
        for launch in event.details["tape"].launches:
            for _, array in arrays.walk([*launch[3], *launch[4]]) if not callable(launch) else ():
                if array.grad is not None and array.grad.ptr:
                    found.setdefault(id(array), array)
        return list(found.values())

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())
