"""Recorded copies whose adjoint overwrites what other readers of the source have contributed.

Before Warp 1.17 the adjoint of a copy replaced the adjoint of its source, and left the one of its
destination standing for whatever wrote there before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind
from .not_recorded import copy_adjoint

MENDED = (1, 17)


class CopiedAgain(Kind):
    """Lets the adjoints of the selected copies accumulate, as later versions of Warp do."""

    NAME = "copy-adjoint"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        version = tuple(int(part) for part in warp.config.version.split(".")[:2])
        self.concerned = version < MENDED
        self.causes: dict[tuple, dict[str, Any]] = {}
        self.readers: dict[int, tuple[tuple, Any]] = {}
        """The last recorded launch that was given an array, by the array's identity."""

    def after(self, event: Event) -> None:
        if not self.concerned or not self.run.started or not event.recorded:
            return
        if event.kind == "launch":
            for _, array in event.arrays:
                self.readers[id(arrays.root(array))] = (event.stack, event.details["kernel"])
        elif event.kind in ("copy", "assign") and event.tape.launches and callable(event.tape.launches[-1]):
            event.tape.launches[-1] = self.wrapped(event, event.tape.launches[-1])

    def wrapped(self, event: Event, adjoint: Callable[[], None]) -> Callable[[], None]:
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        key = (self.NAME, file, line, event.kind)

        def run() -> None:
            source, target = event.source, event.target
            if arrays.memory(source.grad).any() or arrays.memory(target.grad).any():
                self.note(key, event)
            if self.removes(key):
                copy_adjoint(event, None)
            else:
                adjoint()

        return run

    def note(self, key: tuple, event: Event) -> None:
        reader = self.readers.get(id(arrays.root(event.source)))
        self.causes.setdefault(
            key,
            {
                "key": key,
                "stack": event.stack,
                "operation": event.kind,
                "buffer": self.run.name_of(event.source),
                "reader": {"stack": reader[0], "kernel": reader[1]} if reader is not None else None,
            },
        )

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())
