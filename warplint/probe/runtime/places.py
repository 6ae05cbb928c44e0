"""Runs that look at places of a tape: the adjoints there, and the contents in a displaced run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays
from .episodes import GradientChild, ObjectiveChild
from .forks import Reporter
from .hooks import Event, Observer, Stream
from .measure import Measured, displace
from .operands import touched

END = "end"
"""The place behind the last operation of a tape."""
MEMORY_LIMIT = 160 << 20
"""Bytes of adjoints that one run brings back."""


class _Pinned(Observer):
    """A run in which the parameters begin the measured iteration as they did when it was measured."""

    def __init__(self, stream: Stream, measured: Measured, pinned: dict[tuple, list]) -> None:
        self.stream = stream
        self.episode = measured.episode
        self.pinned = pinned

    def pin(self, event: Event) -> None:
        for episode, content in self.pinned.get(event.name, ()):
            parameter = self.stream.births.live.get(episode.serial)
            if parameter is not None:
                displace(parameter, content.reshape(arrays.memory(parameter).shape))


class Look(_Pinned):
    """An undisturbed run: what is on the tapes, and the adjoints at some places of one.

    ``call`` is the number of the backward call looked at; ``sample`` are places whose adjoints are
    brought back; ``inspect`` are operations whose arrays are compared between recording and use.
    """

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        measured: Measured,
        pinned: dict[tuple, list],
        *,
        call: int | None = None,
        sample: list[Any] | None = None,
        inspect: list[int] | None = None,
    ) -> None:
        super().__init__(stream, measured, pinned)
        self.reporter = reporter
        self.call = call
        self.sample = set(sample or ())
        self.inspect = set(inspect or ())
        self.inner: GradientChild | None = None
        self.parameter: Any = None
        self.recorded: dict[int, dict[int, dict[str, Any]]] = {}
        """Per tape (by identity): operations of the episode by position."""
        self.numbers: dict[tuple, int] = {}
        self.serials: list[tuple] = []
        self.names: list[str | None] = []
        self.first: dict[int, int] = {}
        """Event number at which an array was first met; arrays from the host are met when they are born."""
        self.calls: list[dict[str, Any]] = []
        self.position = 0
        self.tape: Any = None
        """The tape of the backward call that is going on, if it is the one looked at."""
        self.cursor = 0
        self.adjoints: dict[Any, dict[int, Any]] = {}
        self.bytes = 0
        self.given: dict[tuple[int, int], list[list[Any]]] = {}
        """Arrays of inspected operations: name of the argument, array, content afterwards."""
        self.inspected: dict[int, dict[str, Any]] = {}

    # -- forward -------------------------------------------------------------------------

    def number(self, array: Any) -> int | None:
        """The array's own number in this run; None for what is no float memory of its own."""
        base = arrays.root(array)
        born = arrays.birth(base)
        if born is None or not arrays.is_float(base) or arrays.gradient_owner(base) is not None:
            return None
        serial = born.serial
        if serial not in self.numbers:
            self.numbers[serial] = len(self.serials)
            self.serials.append(serial)
            self.names.append(self.stream.sites.label(born.stack))
            self.first[self.numbers[serial]] = self.stream.total
        return self.numbers[serial]

    def born(self, array: Any) -> None:
        if self.inner is not None:
            self.inner.born(array)
        if getattr(array, "_warplint_from_host", False):
            self.number(array)

    def before(self, event: Event) -> None:
        self.pin(event)
        if self.inner is None and event.name == self.episode.start:
            self.parameter = self.stream.births.live.get(self.episode.serial)
            self.number(self.parameter)
            self.inner = GradientChild(self.episode, self.parameter, self.reporter, extra=self.facts)
        tape = event.tape
        self.position = len(tape.launches) if tape is not None else 0
        if event.kind == "tape-enter" and not event.details["tape"].launches:
            self.recorded.pop(id(event.details["tape"]), None)
        roots = [self.number(a) for a in touched(event)]
        event.details["numbers"] = [n for n in roots if n is not None]
        if event.kind == "launch" and event.recorded and self.position in self.inspect:
            self.given[id(tape), self.position] = [[label, a] for label, a in event.arrays]
        if event.kind == "backward":
            self.begin(event)
        if self.inner is not None:
            self.inner.before(event)

    def after(self, event: Event) -> None:
        tape = event.tape
        if tape is not None and self.inner is not None and len(tape.launches) > self.position:
            self.recorded.setdefault(id(tape), {})[self.position] = {
                "name": event.name,
                "kind": event.kind,
                "kernel": event.details.get("kernel"),
                "stack": [list(f[:2]) for f in event.stack[:4]],
                "numbers": event.details["numbers"],
                "total": self.stream.total,
            }
        for held in self.given.get((id(tape), self.position), ()) if event.kind == "launch" else ():
            held.append(hash(arrays.content(held[1])))
        if event.kind == "backward":
            self.end(event)
        elif event.kind == "tape-reset":
            self.recorded.pop(id(event.details["tape"]), None)
        if self.inner is not None:
            self.inner.after(event)

    # -- backward ------------------------------------------------------------------------

    def begin(self, event: Event) -> None:
        if self.inner is None:
            return
        tape = event.details["tape"]
        number = len(self.calls)
        ops = dict(self.recorded.get(id(tape), {}))
        self.calls.append(
            {
                "stack": [list(f[:2]) for f in event.stack[:4]],
                "ops": ops,
                "earlier": min(ops, default=0),
                "before": self.gradient(),
            }
        )
        if number == self.call:
            self.tape, self.cursor = tape, len(tape.launches)

    def end(self, event: Event) -> None:
        self.tape = None
        if self.inner is not None and self.calls:
            call = self.calls[-1]
            call["gained"] = self.gradient() - call["before"]

    def gradient(self) -> Any:
        held = getattr(self.parameter, "grad", None)
        shape = arrays.memory(self.parameter).shape
        return np.zeros(shape) if held is None else arrays.values(arrays.root(held)).reshape(shape)

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        if self.tape is None:
            return run()
        if self.cursor == len(self.tape.launches) and END in self.sample:
            self.take(END)
        position = self.locate(call)
        if position in self.inspect:
            self.compare(position)
        result = run()
        if position in self.sample:
            self.take(position)
        return result

    def locate(self, call: dict[str, Any]) -> int | None:
        for index in range(self.cursor - 1, -1, -1):
            entry = self.tape.launches[index]
            if not callable(entry) and entry[3] is call.get("inputs") and entry[4] is call.get("outputs"):
                self.cursor = index
                return index
        return None

    def take(self, position: Any) -> None:
        """The adjoints at a place, of the arrays that had been met when the program was there."""
        if position in self.adjoints or self.bytes > MEMORY_LIMIT:
            return
        ops = self.recorded.get(id(self.tape), {})
        now = None if position == END else ops[position]["total"] if position in ops else 0
        held: dict[int, Any] = {}
        for n in dict.fromkeys(n for op in ops.values() for n in op["numbers"]):
            base = self.stream.births.live.get(self.serials[n])
            late = now is not None and self.first[n] >= now and base is not self.parameter
            if base is None or late or not base.requires_grad or base.grad is None:
                continue
            values = arrays.memory(base.grad).astype(np.float64)
            if base is self.parameter:  # what earlier passes left there is no part of this one
                values = values - self.calls[-1]["before"].reshape(values.shape)
            if np.any(values):
                held[n] = values
                self.bytes += held[n].nbytes
        self.adjoints[position] = held

    def compare(self, position: int) -> None:
        """Arrays of an operation that are not as it left them, and those without a gradient."""
        given = self.given.get((id(self.tape), position), [])
        changed, ungraded = [], []
        for label, array, *after in given:
            base = arrays.root(array)
            number = self.number(array)
            name = (self.names[number] if number is not None else None) or label
            if after and hash(arrays.content(array)) != after[0]:
                changed.append(name)
            if number is not None and (not base.requires_grad or base.grad is None):
                ungraded.append(number)
        self.inspected[position] = {"changed": list(dict.fromkeys(changed)), "ungraded": ungraded}

    # -- the report ----------------------------------------------------------------------

    def facts(self) -> dict[str, Any]:
        born = arrays.birth(arrays.root(self.parameter)) if self.parameter is not None else None
        looking = self.call is not None
        return {
            "calls": [] if looking else [c for c in self.calls if "gained" in c],
            "serials": [] if looking else self.serials,
            "names": [] if looking else self.names,
            "parameter": self.numbers.get(born.serial) if born is not None else None,
            "adjoints": self.adjoints,
            "full": self.bytes > MEMORY_LIMIT,
            "inspected": self.inspected,
        }

    def finished(self, error: BaseException | None) -> None:
        if self.inner is not None:
            self.inner.finished(error)
        self.reporter.leave({"gradient": None, "error": f"{error}"})


class Shifted(_Pinned):
    """A run with the parameter displaced, and what some arrays hold at some places of it.

    ``places`` maps the name of an event (or ``END``, the backward call ``call``) to the place and the
    arrays wanted there, by number and serial.
    """

    def __init__(
        self,
        stream: Stream,
        reporter: Reporter,
        measured: Measured,
        pinned: dict[tuple, list],
        shift: Any,
        seeds: list[dict[int, Any]],
        included: list[bool],
        places: dict[Any, tuple[Any, list[tuple[int, tuple]]]],
        call: int | None,
    ) -> None:
        super().__init__(stream, measured, pinned)
        self.reporter = reporter
        self.start = measured.start
        self.shift = shift
        self.seeds = seeds
        self.included = included
        self.places = places
        self.call = call
        self.child: ObjectiveChild | None = None
        self.contents: dict[Any, dict[int, Any]] = {}
        self.numbers: dict[Any, dict[str, str]] = {}
        """Arguments of the launches there that are no arrays."""

    def before(self, event: Event) -> None:
        self.pin(event)
        if self.child is None and event.name == self.episode.start:
            parameter = self.stream.births.live.get(self.episode.serial)
            displace(parameter, self.start + self.shift)
            adding = _Adding(self.reporter, self.facts)
            self.child = ObjectiveChild(self.episode, parameter, adding, self.seeds, self.included)
        if self.child is None:
            return
        if event.name in self.places:
            self.keep(event.name)
            self.numbers[self.places[event.name][0]] = _numbers(event)
        if event.kind == "backward" and len(self.child.values) == self.call and END in self.places:
            self.keep(END)
        self.child.before(event)

    def keep(self, name: Any) -> None:
        position, wanted = self.places[name]
        found = {}
        for number, serial in wanted:
            base = self.stream.births.live.get(serial)
            if base is not None:
                kept = getattr(base, "_warplint_kept", None) if name == END else None
                found[number] = arrays.memory(base).copy() if kept is None else np.asarray(kept, np.float32)
        self.contents[position] = found

    def after(self, event: Event) -> None:
        if self.child is not None:
            self.child.after(event)

    def facts(self) -> dict[str, Any]:
        values = self.child.values if self.child is not None else []
        return {"values": list(values), "contents": self.contents, "numbers": self.numbers, "extra": True}

    def finished(self, error: BaseException | None) -> None:
        if self.child is not None:
            self.child.finished(error)
        self.reporter.leave({"error": f"the displaced run did not begin ({error})"})


class _Adding(Reporter):
    """A reporter that adds something to what is reported."""

    def __init__(self, reporter: Reporter, extra: Callable[[], dict[str, Any]]) -> None:
        self._fd = reporter._fd
        self._extra = extra

    def leave(self, report: Any) -> None:
        super().leave({**report, **self._extra()})


def _numbers(event: Event) -> dict[str, str]:
    """The arguments of a launch that are no arrays, by name."""
    if event.kind != "launch":
        return {}
    labels = [getattr(a, "label", str(i)) for i, a in enumerate(event.details["object"].adj.args)]
    given = [*(event.details["inputs"] or ()), *(event.details["outputs"] or ())]
    return {
        label: repr(value)
        for label, value in zip(labels, given)
        if not arrays.is_array(value) and not hasattr(value, "_cls") and value is not None
    }
