"""What each recorded launch read, who overwrote it since, and putting it back.

A backward step re-reads the arrays its launch was given. If something wrote to them in
between, it differentiates at the wrong point. This observer keeps the bytes every recorded
launch was given (one copy per distinct content), names the first event that changed them, and
can put them back around the adjoint of that launch: the counterfactual "this overwrite went
elsewhere". A reset the tape does not know of (``zero_``, ``fill_``, a copy without a record)
also ends the life of a value whose adjoint must not reach earlier steps: there the
counterfactual clears the adjoint at the reset's place on the tape.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from . import arrays
from .hooks import Event, Observer, Stream

WRITES = ("launch", "reduce", "copy", "assign", "zero", "fill")

MEMORY_LIMIT = 2 << 30
"""Bytes of snapshots after which no more are taken."""


class Content:
    """One content of one view: the bytes a recorded launch was given."""

    __slots__ = ("__weakref__", "array", "data", "key", "overwriter")

    def __init__(self, array: Any, key: tuple, data: bytes) -> None:
        self.array = array
        self.key = key
        self.data = data
        self.overwriter: dict[str, Any] | None = None


class Record:
    """One recorded launch: where it was called and what it was given."""

    __slots__ = ("contents", "kernel", "name", "session", "stack")

    def __init__(self, event: Event, session: int, contents: list[tuple[str, Content]]) -> None:
        self.name = event.name
        self.stack = event.stack
        self.kernel = event.details["kernel"]
        self.session = session
        self.contents = contents


class _TapeState:
    def __init__(self) -> None:
        self.records: dict[int, Record] = {}
        self.clears: list[tuple[int, Any, dict[str, Any]]] = []
        self.touched: set[tuple[int, int]] = set()


def cause_key(overwriter: dict[str, Any]) -> tuple:
    """Overwrites at one user line (by one kernel) are one cause."""
    file, line = overwriter["stack"][0][:2] if overwriter["stack"] else ("?", 0)
    return ("overwrite", file, line, overwriter.get("kernel") or overwriter["kind"])


class Snapshots(Observer):
    """Keeps what recorded launches read; restores it where ``selected`` says so.

    ``selected`` maps a cause key to whether that overwrite is taken away in this run.
    """

    def __init__(self, stream: Stream, selected: Callable[[tuple], bool]) -> None:
        self.stream = stream
        self.selected = selected
        self.active = False
        """Restoring begins with the measured episode: earlier iterations must stay as they were."""
        self.tapes: weakref.WeakKeyDictionary[Any, _TapeState] = weakref.WeakKeyDictionary()
        self.latest: weakref.WeakValueDictionary[tuple, Content] = weakref.WeakValueDictionary()
        self.by_root: dict[int, set[tuple]] = {}
        self.aliases = False
        self.pending: tuple[Any, int, Record] | None = None
        self.hazards: dict[tuple, dict[str, Any]] = {}
        self.bytes = 0
        self.exhausted = False
        self.backward: tuple[Any, _TapeState] | None = None
        self.cursor = 0
        self.objective_at: int | None = None
        """Position on the tape of the last launch that was given the objective."""
        self.position = 0
        self.cleared: set[int] = set()

    # -- recording -----------------------------------------------------------------------

    def state(self, tape: Any) -> _TapeState:
        found = self.tapes.get(tape)
        if found is None:
            found = self.tapes[tape] = _TapeState()
        return found

    def before(self, event: Event) -> None:
        self.position = len(event.tape.launches) if event.tape is not None else 0
        if event.kind == "launch" and event.recorded:
            contents = [(label, self.content(a, event)) for label, a in event.arrays]
            known = [(label, c) for label, c in contents if c is not None]
            record = Record(event, _session(event.tape), known)
            self.pending = (event.tape, len(event.tape.launches), record)
        elif event.kind == "backward":
            tape = event.details["tape"]
            self.backward = (tape, self.state(tape))
            self.cursor = len(tape.launches)
            self.objective_at = _last_given(tape, event.details["loss"], event.details["grads"])
            self.cleared = set()

    def after(self, event: Event) -> None:
        if self.pending is not None and event.kind == "launch":
            tape, index, record = self.pending
            self.pending = None
            if len(tape.launches) > index:
                state = self.state(tape)
                state.records[index] = record
                for _, array in event.arrays:
                    state.touched.add((record.session, id(arrays.root(array))))
        if event.kind in WRITES:
            self.trace(event)
        elif event.kind == "backward":
            self.backward = None
        elif event.kind == "tape-reset":
            self.tapes.pop(event.details["tape"], None)

    def content(self, array: Any, event: Event) -> Content | None:
        key = arrays.view_key(array)
        known = self.latest.get(key)
        data = arrays.content(array)
        if known is not None:
            if known.data == data:
                return known
            known.overwriter = self.unseen(event, known)
        if self.bytes + len(data) > MEMORY_LIMIT:
            self.exhausted = True
            return None
        self.bytes += len(data)
        fresh = Content(array, key, data)
        weakref.finalize(fresh, self.forget, len(data))
        self.latest[key] = fresh
        base = arrays.root(array)
        self.by_root.setdefault(id(base), set()).add(key)
        if getattr(base, "_warplint_alias", False):
            self.aliases = True
        return fresh

    def forget(self, size: int) -> None:
        self.bytes -= size

    def trace(self, event: Event) -> None:
        """Finds which remembered contents ``event`` changed."""
        targets = [(label, a) for label, a in event.arrays]
        if event.target is not None and arrays.is_array(event.target):
            targets.append(("", event.target))
        for label, array in targets:
            base = arrays.root(array)
            if arrays.gradient_owner(base) is not None:
                continue
            if self.aliases or getattr(base, "_warplint_alias", False):
                keys = list(self.latest.keys())
            else:
                keys = list(self.by_root.get(id(base), ()))
            start, end = arrays.interval(array)
            for key in keys:
                content = self.latest.get(key)
                if content is None:
                    continue
                low, high = arrays.interval(content.array)
                if low < end and start < high and arrays.content(content.array) != content.data:
                    content.overwriter = self.describe(event, label, content)
                    self.latest.pop(key, None)
        if event.kind not in ("launch", "reduce") and not event.recorded and event.tape is not None:
            self.note_reset(event)

    def note_reset(self, event: Event) -> None:
        """A write the tape does not know of, onto an array this session already used."""
        target = event.target
        state = self.state(event.tape)
        session = _session(event.tape)
        if not arrays.is_array(target) or (session, id(arrays.root(target))) not in state.touched:
            return
        state.clears.append((len(event.tape.launches), target, self.describe(event, "", None, target)))

    def describe(
        self, event: Event, label: str, content: Content | None, target: Any = None
    ) -> dict[str, Any]:
        array = content.array if content is not None else target
        return {
            "kind": event.kind,
            "name": event.name,
            "stack": event.stack,
            "argument": label,
            "kernel": event.details.get("kernel"),
            "kernel_file": event.details.get("kernel_file"),
            "kernel_line": event.details.get("kernel_line"),
            "recorded": event.recorded,
            "on_tape": event.tape is not None,
            "position": self.position,
            "copied": arrays.is_array(event.source),
            "aliased": sum(arrays.root(a) is arrays.root(array) for _, a in event.arrays) > 1,
            "tape": id(event.tape) if event.tape is not None else None,
            "session": _session(event.tape) if event.tape is not None else None,
            **self.buffer(array),
        }

    def unseen(self, event: Event, content: Content) -> dict[str, Any]:
        found = self.describe(event, "", content)
        found.update(kind="unseen", kernel=None, recorded=False)
        return found

    def buffer(self, array: Any) -> dict[str, Any]:
        born = arrays.birth(arrays.root(array))
        stack = born.stack if born is not None else ()
        return {"buffer": self.stream.sites.label(stack), "born": stack[:4]}

    # -- backward ------------------------------------------------------------------------

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        if self.backward is None:
            return run()
        tape, state = self.backward
        index = self.locate(tape, call)
        if index is None:
            return run()
        record = state.records.get(index)
        self.apply_clears(state, index, record)
        swapped = self.put_back(record, id(tape)) if record is not None else []
        try:
            return run()
        finally:
            for memory, current in reversed(swapped):
                memory[...] = current

    def locate(self, tape: Any, call: dict[str, Any]) -> int | None:
        for index in range(self.cursor - 1, -1, -1):
            launch = tape.launches[index]
            if not callable(launch) and launch[3] is call.get("inputs") and launch[4] is call.get("outputs"):
                self.cursor = index
                return index
        return None

    def apply_clears(self, state: _TapeState, index: int, record: Record | None) -> None:
        for number, (position, array, overwriter) in enumerate(state.clears):
            if position <= index or number in self.cleared:
                continue
            self.cleared.add(number)
            if record is not None and overwriter["session"] != record.session:
                continue
            gradient = array.grad
            if gradient is None:
                continue
            memory = arrays.memory(gradient)
            if not memory.any():
                continue
            self.note(overwriter, record, "", "adjoint")
            if self.active and self.selected(cause_key(overwriter)):
                memory[...] = 0

    def put_back(self, record: Record, tape: int) -> list[tuple[Any, Any]]:
        swapped = []
        for label, content in record.contents:
            if arrays.content(content.array) == content.data:
                continue
            overwriter = content.overwriter
            if overwriter is None:
                overwriter = self.unseen_at_backward(content)
            if overwriter["tape"] == tape and overwriter["session"] != record.session:
                continue  # a tape entered again without reset: not an overwrite's fault
            self.note(overwriter, record, label, "value")
            if self.active and self.selected(cause_key(overwriter)):
                memory = arrays.memory(content.array)
                swapped.append((memory, memory.copy()))
                memory[...] = _as_array(content.data, memory)
        return swapped

    def unseen_at_backward(self, content: Content) -> dict[str, Any]:
        content.overwriter = {
            "kind": "unseen",
            "name": (),
            "stack": self.stream.sites.stack(2),
            "argument": "",
            "kernel": None,
            "kernel_file": None,
            "kernel_line": None,
            "recorded": False,
            "on_tape": False,
            "position": 0,
            "copied": False,
            "aliased": False,
            "tape": None,
            "session": None,
            **self.buffer(content.array),
        }
        return content.overwriter

    def note(self, overwriter: dict[str, Any], record: Record | None, label: str, what: str) -> None:
        """Files that a value (or a surviving adjoint) was really affected in the episode."""
        if not self.active:
            return
        key = cause_key(overwriter)
        reader = None
        own = False
        here = self.backward is not None and overwriter["tape"] == id(self.backward[0])
        late = here and self.objective_at is not None and overwriter["position"] > self.objective_at
        if record is not None:
            own = record.name == overwriter["name"]
            reader = {"stack": record.stack, "kernel": record.kernel, "argument": label, "own": own}
            reader["same_tape"] = here
        found = self.hazards.get(key)
        if found is None:
            found = self.hazards[key] = {
                **overwriter,
                "key": key,
                "count": 0,
                "readers": [],
                "buffers": [],
                "needed": [],
                "what": [],
                "after_objective": True,
            }
        found["count"] += 1
        found["aliased"] = found["aliased"] or overwriter["aliased"]
        found["after_objective"] = found["after_objective"] and late
        if what not in found["what"]:
            found["what"].append(what)
        if overwriter["buffer"] not in found["buffers"]:
            found["buffers"].append(overwriter["buffer"])
        if not own and overwriter["buffer"] not in found["needed"]:
            found["needed"].append(overwriter["buffer"])
        if reader is not None and reader not in found["readers"] and len(found["readers"]) < 8:
            found["readers"].append(reader)


def _last_given(tape: Any, loss: Any, grads: Any) -> int | None:
    """The last launch of a tape that was handed what its backward pass starts from."""
    seeds = [a for a in (loss, *(grads or ())) if arrays.is_array(a)]
    roots = {id(arrays.root(a)) for a in seeds}
    for index in range(len(tape.launches) - 1, -1, -1):
        launch = tape.launches[index]
        given = () if callable(launch) else (*launch[3], *launch[4])
        if any(arrays.is_array(a) and id(arrays.root(a)) in roots for a in given):
            return index
    return None


def _session(tape: Any) -> int:
    return getattr(tape, "_warplint_session", 0)


def _as_array(data: bytes, like: Any) -> Any:
    import numpy as np

    return np.frombuffer(data, dtype=like.dtype).reshape(like.shape)
