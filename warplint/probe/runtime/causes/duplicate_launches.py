"""A launch that is on a tape twice, though nothing has changed in between."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from ..kernels import may_write
from .base import CounterfactualRun, Kind


class DuplicateLaunches(Kind):
    """Takes the selected repetitions off the tape.

    A repetition has the arguments of an earlier launch of the same recording, nothing has written
    to any of its arrays since, and it changes nothing: it stores what is there already.
    """

    NAME = "duplicate-launch"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.seen: dict[tuple, tuple[int, tuple]] = {}
        """Launches by what they were given: number of the event and where it was."""
        self.writes: dict[int, int] = {}
        """Number of the event that last wrote to an array, by the identity of its memory."""
        self.number = 0
        self.repeated: dict[int, tuple[Any, tuple]] = {}
        """Repetitions on a tape, by the identity of the record: the record and the cause's key."""
        self.replaced: list[tuple[Any, int, Any]] = []
        self.causes: dict[tuple, dict[str, Any]] = {}

    def before(self, event: Event) -> None:
        self.number += 1
        if event.kind == "launch" and event.recorded and self.run.started:
            event.details["contents"] = [(a, hash(arrays.content(a))) for _, a in event.arrays]
        elif event.kind == "backward":
            tape = event.details["tape"]
            for position, launch in enumerate(tape.launches):
                record, key = self.repeated.get(id(launch), (None, ()))
                if record is launch and self.removes(key):
                    # Positions on the tape stay what they are: others know its launches by them.
                    self.replaced.append((tape, position, launch))
                    tape.launches[position] = _nothing

    def after(self, event: Event) -> None:
        if event.kind == "launch":
            contents = event.details.pop("contents", None)
            if contents is not None:
                self.look(event, contents)
            kernel = event.details["object"]
            written = [a for label, a in event.arrays if may_write(kernel, label)]
        elif event.kind == "backward":
            for tape, position, launch in self.replaced:
                tape.launches[position] = launch
            self.replaced = []
            written = []
        elif event.kind == "reduce":
            written = [a for _, a in event.arrays]
        else:
            written = [event.target] if arrays.is_array(event.target) and event.kind != "read" else []
        for array in written:
            self.writes[id(arrays.root(array))] = self.number

    def look(self, event: Event, contents: list[tuple[Any, int]]) -> None:
        given = (*event.details["inputs"], *event.details["outputs"])
        scalars = tuple(repr(v) for v in given if not arrays.is_array(v))
        views = tuple((label, arrays.view_key(a)) for label, a in event.arrays)
        signature = (
            id(event.tape),
            id(event.details["object"]),
            str(event.details["call"]["dim"]),
            scalars,
            views,
        )
        earlier, stack = self.seen.get(signature, (0, ()))
        untouched = all(self.writes.get(id(arrays.root(a)), 0) <= earlier for _, a in event.arrays)
        same = all(hash(arrays.content(a)) == digest for a, digest in contents)
        if not (earlier and untouched and same):
            self.seen[signature] = (self.number, event.stack)
            return
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        key = (self.NAME, file, line)
        record = event.tape.launches[-1]
        self.repeated[id(record)] = (record, key)
        kernel = event.details["object"]
        outputs = [a for label, a in event.arrays if may_write(kernel, label)]
        self.causes.setdefault(
            key,
            {
                "key": key,
                "stack": event.stack,
                "first": stack[:4],
                "kernel": event.details["kernel"],
                "buffer": self.run.name_of(outputs[0]) if outputs else None,
                "retained": any(getattr(a, "_retain_grad", False) for a in outputs),
            },
        )

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def _nothing() -> None:
    """Stands for a launch that is not gone back over."""
