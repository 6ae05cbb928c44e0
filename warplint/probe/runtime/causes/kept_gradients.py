"""Gradients that an earlier backward pass left and that the next one adds to."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from ..objectives import recording_of, row_of, seeds_of
from .base import CounterfactualRun, Kind


class KeptGradients(Kind):
    """Zeroes, before each selected backward call, what is not part of this episode's gradient.

    Of the parameter that is whatever earlier iterations left there; several passes of one
    episode may add up. Of an array that the pass writes it is every adjoint that an earlier pass
    has handed on already: adding to it hands it on again.
    """

    NAME = "kept-gradient"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.written: set[tuple[str, str]] = set()
        """(kernel, argument) pairs that were seen to write."""
        self.spent: dict[int, tuple[Any, bytes]] = {}
        """Gradients whose content a pass has handed on, by the identity of their memory."""
        self.copied: dict[int, tuple[Any, Any]] = {}
        """Of gradients that came with a copy: the array that was copied first."""
        self.passed = False
        """Whether a pass of the measured episode has reached the parameter."""
        self.recordings: set[tuple] = set()
        self.causes: dict[tuple, dict[str, Any]] = {}

    # -- what writes ---------------------------------------------------------------------

    def before(self, event: Event) -> None:
        if event.kind == "launch" and event.recorded:
            kernel = event.details["kernel"]
            event.details["outputs known"] = {
                label: (array, hash(arrays.content(array)))
                for label, array in event.arrays
                if array.requires_grad and (kernel, label) not in self.written
            }
        elif event.kind == "backward":
            self.before_backward(event)
        elif event.kind == "adjoint":
            self.clear(event, _manual(event, "adj_inputs"), again=False)

    def after(self, event: Event) -> None:
        if event.kind == "launch" and event.recorded:
            for label, (array, digest) in event.details.pop("outputs known", {}).items():
                if hash(arrays.content(array)) != digest:
                    self.written.add((event.details["kernel"], label))
        elif event.kind == "backward":
            for array in self.outputs(event.details["tape"]):
                self.spend(array.grad)
        elif event.kind == "copy":
            self.inherit(event.target, event.source)
        elif event.kind == "adjoint":
            for gradient in _manual(event, "adj_inputs"):
                self.spent.pop(id(arrays.root(gradient)), None)
            for gradient in _manual(event, "adj_outputs"):
                self.spend(gradient)

    def spend(self, gradient: Any) -> None:
        base = arrays.root(gradient)
        self.spent[id(base)] = (base, arrays.content(base))

    def inherit(self, target: Any, source: Any) -> None:
        """`wp.copy()` and `wp.clone()` copy the gradient too: an earlier pass left what is in it."""
        if not (arrays.is_array(target) and arrays.is_array(source)):
            return
        if target.grad is not None and source.grad is not None:
            self.spend(target.grad)
            base = arrays.root(target.grad)
            _, first = self.copied.get(id(arrays.root(source.grad)), (None, source))
            self.copied[id(base)] = (base, first)

    def outputs(self, tape: Any) -> list[Any]:
        """Arrays with a gradient that recorded launches and copies of a tape have written."""
        found: list[Any] = []
        for launch in tape.launches:
            if callable(launch):
                found.extend(a for a in _closure(launch, "dest") if a.grad is not None)
                continue
            for label, array in arrays.arguments(launch[0], launch[3], launch[4]):
                if array.grad is not None and (launch[0].key, label) in self.written:
                    found.append(array)
        return found

    # -- passes --------------------------------------------------------------------------

    def before_backward(self, event: Event) -> None:
        if not self.run.started:
            return
        recording = recording_of(event)
        if recording is None:  # the rows of a Jacobian: other seeds, on the same recording
            row = row_of(event, seeds_of(event, set(), frozenset()))
            recording = row[:2] if row is not None else None
        again = recording is not None and recording in self.recordings
        if recording is not None:
            self.recordings.add(recording)
        seeded = [event.details.get("loss"), *(event.details.get("grads") or ())]
        seeds = {id(arrays.root(a)) for a in seeded if arrays.is_array(a)}
        found: dict[int, Any] = {}
        for launch in event.details["tape"].launches:
            given = _closure(launch, "dest", "src") if callable(launch) else [*launch[3], *launch[4]]
            for _, array in arrays.walk(given):
                if array.grad is not None and id(arrays.root(array)) not in seeds:
                    found.setdefault(id(array.grad), array.grad)
        self.clear(event, list(found.values()), again=again)

    def clear(self, event: Event, gradients: list[Any], *, again: bool) -> None:
        """Takes what is left in ``gradients`` away, before the pass that would add to it."""
        if not self.run.started:
            return
        parameter = self.run.parameter
        stale = []
        for gradient in gradients:
            base = arrays.root(gradient)
            owner = arrays.gradient_owner(gradient)
            if owner is not None and owner is parameter:
                if (again or not self.passed) and arrays.memory(base).any():
                    stale.append((base, owner))
                self.passed = True
            else:
                spent = self.spent.get(id(base), (None, b""))
                same = spent[0] is base and spent[1] == arrays.content(base)
                if same and arrays.memory(base).any():
                    stale.append((base, owner))
        if not stale:
            return
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        key = (self.NAME, file, line)
        cause = self.causes.setdefault(
            key,
            {
                "key": key,
                "stack": event.stack,
                "buffers": [],
                "parameter": False,
                "parameter_name": self.run.name_of(parameter),
                "again": again,
                "manual": event.kind == "adjoint",
                "argument": None,
                "copied": [],
            },
        )
        for base, owner in stale:
            name = self.run.name_of(owner) if owner is not None else None
            if owner is parameter:
                cause["parameter"] = True
                if cause["manual"]:
                    cause["argument"] = _position(event, base)
            elif name not in cause["buffers"]:
                cause["buffers"].append(name)
                copied, first = self.copied.get(id(base), (None, None))
                source = self.run.name_of(first) if copied is base else None
                if source is not None and source not in cause["copied"]:
                    cause["copied"].append(source)
            if self.removes(key):
                arrays.memory(base)[...] = 0

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def _manual(event: Event, which: str) -> list[Any]:
    return [a for a in event.details[which] if arrays.is_array(a) and a.ptr]


def _position(event: Event, base: Any) -> int:
    """Which of a launch's ``adj_inputs`` a gradient is."""
    given = list(event.details["adj_inputs"])
    return next(i for i, a in enumerate(given) if arrays.is_array(a) and arrays.root(a) is base)


def _closure(function: Any, *names: str) -> list[Any]:
    """Arrays of these names that a recorded copy holds."""
    cells = getattr(function, "__closure__", None) or ()
    code = getattr(function, "__code__", None)
    free = code.co_freevars if code is not None else ()
    held = {name: cell.cell_contents for name, cell in zip(free, cells)}
    return [held[name] for name in names if arrays.is_array(held.get(name))]
