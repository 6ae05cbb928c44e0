"""Seeds that are not the derivative of the number the program reports."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind


class SeedMismatch(Kind):
    """Seeds the outputs with the derivative of the reported number."""

    NAME = "seed-mismatch"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: list[dict[str, Any]] = []
        reported = run.measured.reported
        if reported is not None and reported.derivative is not None:
            file, line = reported.stack[0][:2] if reported.stack else ("?", 0)
            self.causes.append(
                {
                    "key": (self.NAME, file, line),
                    "stack": reported.stack,
                    "buffer": reported.output,
                    "number": reported.name,
                    "number_line": reported.line,
                    "factor": reported.factor,
                }
            )

    def before(self, event: Event) -> None:
        reported = self.run.measured.reported
        if event.kind != "backward" or not self.run.started or reported is None:
            return
        if not any(self.removes(cause["key"]) for cause in self.causes):
            return
        output = self.stream.births.live.get(reported.serial)
        grads = event.details.get("grads") or {}
        given = [seed for array, seed in grads.items() if array is output]
        for seed in given or ([output.grad] if output is not None and output.grad is not None else []):
            memory = arrays.memory(seed)
            memory[...] = reported.derivative.reshape(memory.shape).astype(memory.dtype)

    def found(self) -> list[dict[str, Any]]:
        return self.causes
