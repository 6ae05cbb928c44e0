"""Launches of an earlier recording that are still on a tape when it is entered again."""

from __future__ import annotations

import weakref
from typing import Any

from ..hooks import Event
from .base import CounterfactualRun, Kind


class ReplayedLaunches(Kind):
    """Lets the selected backward calls go back over the latest recording alone."""

    NAME = "replayed-launches"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.passed: weakref.WeakSet[Any] = weakref.WeakSet()
        """Tapes that were gone back over since they were last emptied."""
        self.replayed: weakref.WeakKeyDictionary[Any, tuple[int, tuple]] = weakref.WeakKeyDictionary()
        """How many launches at a tape's head a pass was over already, and where it was entered."""
        self.dropped: list[Any] = []
        self.causes: dict[tuple, dict[str, Any]] = {}

    def before(self, event: Event) -> None:
        tape: Any = event.details.get("tape")
        if event.kind == "tape-enter" and tape in self.passed and tape.launches:
            self.replayed[tape] = (len(tape.launches), event.stack)
        elif event.kind == "tape-reset":
            self.passed.discard(tape)
            self.replayed.pop(tape, None)
        elif event.kind == "backward":
            self.dropped = []
            count, entered = self.replayed.get(tape, (0, ()))
            if self.run.started and 0 < count <= len(tape.launches):
                key = self.note(tape, count, entered)
                if self.removes(key):
                    # Positions on the tape stay what they are: others know its launches by them.
                    self.dropped = tape.launches[:count]
                    tape.launches[:count] = [_nothing] * count

    def after(self, event: Event) -> None:
        if event.kind == "backward":
            tape = event.details["tape"]
            tape.launches[: len(self.dropped)] = self.dropped
            self.dropped = []
            self.passed.add(tape)

    def note(self, tape: Any, count: int, entered: tuple) -> tuple:
        born = getattr(tape, "_warplint_born", ()) or entered
        file, line = born[0][:2] if born else ("?", 0)
        key = (self.NAME, file, line)
        kernels = [launch[0].key for launch in tape.launches[:count] if not callable(launch)]
        cause = self.causes.setdefault(key, {"key": key, "stack": born, "entered": entered, "launches": 0})
        cause["launches"] = max(cause["launches"], count)
        cause.setdefault("kernels", list(dict.fromkeys(kernels))[:4])
        return key

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def _nothing() -> None:
    """Stands for a launch that is not gone back over."""
