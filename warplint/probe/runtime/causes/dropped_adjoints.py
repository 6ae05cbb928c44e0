"""Hand-written checkpointing that does not hand every adjoint of a segment's start on."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from .. import arrays
from ..hooks import Event
from ..kernels import may_read
from .base import CounterfactualRun, Kind


@dataclass
class Start:
    """An array that a recording began with, and the adjoint that its backward pass left there."""

    array: Any
    content: bytes
    adjoint: bytes | None = None

    def is_continued_by(self, array: Any) -> bool:
        """Whether an array that another recording wrote holds what this one began with."""
        same_kind = array.shape == self.array.shape and array.dtype == self.array.dtype
        return same_kind and arrays.content(array) == self.content


class DroppedAdjoints(Kind):
    """Seeds the end of each selected segment with the adjoint of the next one's start.

    Which state goes on as which is told by its content: what one recording wrote is bit for bit
    what the recording that was gone back over before began with.
    """

    NAME = "dropped-adjoint"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.starts: weakref.WeakKeyDictionary[Any, dict[int, Start]] = weakref.WeakKeyDictionary()
        """By tape: the arrays whose content from before the recording it uses."""
        self.written: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()
        """By tape: the arrays that its operations have written."""
        self.passed: list[Start] = []
        """Starts of the segments that were gone back over in this episode."""
        self.causes: dict[tuple, dict[str, Any]] = {}

    # -- recordings ----------------------------------------------------------------------

    def before(self, event: Event) -> None:
        if event.kind == "launch" and event.recorded:
            kernel = event.details["object"]
            for label, array in event.arrays:
                if arrays.is_float(array) and may_read(kernel, label):
                    self.begin(event.tape, array)
        elif event.kind in ("copy", "assign") and event.recorded:
            self.begin(event.tape, event.source)
        elif event.kind == "backward" and self.run.started and self.passed:
            self.hand_on(event)

    def begin(self, tape: Any, array: Any) -> None:
        known = self.starts.setdefault(tape, {})
        if id(array) not in known and id(array) not in self.written.get(tape, {}):
            known[id(array)] = Start(array, arrays.content(array))

    def after(self, event: Event) -> None:
        if event.kind == "launch" and event.recorded:
            kernel = event.details["object"]
            starts, written = self.starts.get(event.tape, {}), self.written.setdefault(event.tape, {})
            for label, array in event.arrays:
                begun = starts.get(id(array))
                changed = (
                    begun is None or not may_read(kernel, label) or arrays.content(array) != begun.content
                )
                if arrays.is_float(array) and array.requires_grad and changed:
                    written[id(array)] = array
        elif event.kind in ("copy", "assign") and event.recorded:
            self.written.setdefault(event.tape, {})[id(event.target)] = event.target
        elif event.kind == "tape-reset":
            self.starts.pop(event.details["tape"], None)
            self.written.pop(event.details["tape"], None)
        elif event.kind == "backward" and self.run.started:
            for start in self.starts.get(event.details["tape"], {}).values():
                if start.array is not self.run.parameter and any(start.content):
                    gradient = start.array.grad
                    start.adjoint = arrays.content(gradient) if gradient is not None else None
                    self.passed.append(start)

    # -- passes --------------------------------------------------------------------------

    def hand_on(self, event: Event) -> None:
        """Looks for ends of this segment that begin a later one and get no adjoint from it."""
        tape = event.details["tape"]
        given = {id(a): g for a, g in (event.details.get("grads") or {}).items()}
        known = {start.adjoint for start in self.passed if start.adjoint and any(start.adjoint)}
        inputs = [a for launch in tape.launches if not callable(launch) for _, a in arrays.walk(launch[3])]
        for array in list(self.written.get(tape, {}).values()):
            start = next((s for s in reversed(self.passed) if s.is_continued_by(array)), None)
            if start is None or start.array is array or array is event.details.get("loss"):
                continue
            seed = given.get(id(array), array.grad)
            if seed is None:
                continue
            held = arrays.content(seed)
            if held == start.adjoint or (any(held) and held not in known):
                continue  # handed on, or a seed that is more than one adjoint
            if any(a.shape == array.shape and arrays.content(a) == start.adjoint for a in inputs):
                continue  # handed on by a kernel
            self.note(event, array, start, wrong=any(held))
            if self.removes(self.key(event)) and start.adjoint is not None:
                arrays.put(seed, start.adjoint)

    def key(self, event: Event) -> tuple:
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        return (self.NAME, file, line)

    def note(self, event: Event, array: Any, start: Start, *, wrong: bool) -> None:
        key = self.key(event)
        begun = arrays.birth(arrays.root(start.array))
        cause = self.causes.setdefault(
            key,
            {
                "key": key,
                "stack": event.stack,
                "buffers": [],
                "ends": [],
                "begun": begun.stack[:4] if begun is not None else (),
                "wrong": wrong,
            },
        )
        for names, name in (
            (cause["buffers"], self.run.name_of(start.array)),
            (cause["ends"], self.run.name_of(array)),
        ):
            if name is not None and name not in names:
                names.append(name)

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())
