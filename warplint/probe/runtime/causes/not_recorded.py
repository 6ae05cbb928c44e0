"""Operations between the parameter and the objective that no tape recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from warp._src import context

from .. import arrays
from ..hooks import Event
from .activity import is_active
from .base import CounterfactualRun, Kind


class NotRecorded(Kind):
    """Puts the selected operations on the tapes that use what they wrote.

    An operation that ran while no tape was recording goes to the front of every tape entered
    later; one that ran after a tape was left goes to its end when the backward pass begins. Its
    adjoint runs at the values it was given.
    """

    NAME = "not-recorded"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.producers: dict[tuple, dict[str, Any]] = {}
        self.causes: dict[tuple, dict[str, Any]] = {}
        self.recorded: dict[tuple, set[str]] = {}
        """Keys of launches that some tape of the episode does see, with the arguments at which these
        are given the parameter."""
        self.waiting: list[tuple[Callable[[Any], Callable[[], None]], set[int]]] = []
        """Adjoints of selected operations that ran off the tape, and the tapes that have them."""

    def before(self, event: Event) -> None:
        if not self.run.started:
            return
        if event.kind == "backward":
            self.attach(event.details["tape"])
            loss = event.details["loss"]
            for array in (loss, *(event.details["grads"] or ())):
                if arrays.is_array(array):
                    self.use(array, event, "backward()")
        elif event.recorded:
            given = {label for label, a in event.arrays if arrays.root(a) is self.run.parameter}
            self.recorded.setdefault(self.key(event), set()).update(given)
            for label, array in [*event.arrays, ("", event.source)]:
                if arrays.is_array(array):
                    self.use(array, event, label)
        elif self.is_candidate(event):
            event.details["candidate"] = True
            if self.removes(self.key(event)):
                if "indexed" in event.details and event.target.grad is None:
                    event.target.requires_grad = True
                event.details["adjoint"] = _adjoint(event)

    def after(self, event: Event) -> None:
        if not self.run.started:
            return
        if event.kind == "tape-enter":
            self.attach(event.details["tape"])
        elif event.details.pop("candidate", False):
            self.produce(event)
            adjoint = event.details.pop("adjoint", None)
            if adjoint is not None and event.tape is not None:
                event.tape.launches.append(adjoint(event.tape))
            elif adjoint is not None:
                self.waiting.append((adjoint, set()))

    def is_candidate(self, event: Event) -> bool:
        """Whether an active value goes into an operation that no tape sees."""
        if event.kind in ("copy", "assign"):
            if event.source is None or (event.tape is not None and "indexed" not in event.details):
                return False  # on a tape a plain copy goes unrecorded for want of a gradient only
            pair = (event.source, event.target)
            return is_active(event.source) and all(arrays.gradient_owner(a) is None for a in pair)
        if event.kind not in ("launch", "reduce") or not self.run.activity.reads_active(event):
            return False
        # A launch that is given a gradient is the optimizer's.
        return not any(arrays.gradient_owner(a) is not None for _, a in event.arrays)

    def key(self, event: Event) -> tuple:
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        return (self.NAME, file, line, event.details.get("kernel") or event.kind)

    def produce(self, event: Event) -> None:
        written = event.details.get("changed", ())
        if event.kind in ("copy", "assign"):
            written = [arrays.root(event.target)]
        if not written:
            return
        key = self.key(event)
        if key not in self.producers:
            how = "off the tape"
            if event.tape is not None:
                how = event.details.get("unrecorded", "not recorded")
                how = "indexed" if "indexed" in event.details else how
            self.producers[key] = {
                "key": key,
                "stack": event.stack,
                "how": how,
                "operation": event.kind,
                "kernel": event.details.get("kernel"),
                "buffer": self.buffer(written[0]),
                "born": _born(written[0]),
                "reader": None,
                "running": False,
                "direct": False,
                "copies": set(),
                "from": set(),
            }
        cause = self.producers[key]
        births = [arrays.birth(base) for base in written]
        families = {b.family for b in births if b is not None}
        cause["running"] |= not families.isdisjoint(self.stream.running | self.stream.lagging)
        given = [*event.arrays, *([("", event.source)] if event.source is not None else [])]
        for label, array in given:
            producers: set[tuple] = getattr(arrays.root(array), "_warplint_producers", set())
            cause["from"] |= producers
            if any(self.producers[p]["direct"] and is_copy(self.producers[p]) for p in producers):
                cause["copies"].add(label)
            fresh = any(arrays.root(array) is base for base in written)
            cause["direct"] |= is_active(array) and not producers and not fresh
        for base in written:
            base._warplint_producers = getattr(base, "_warplint_producers", set()) | {key}

    def buffer(self, base: Any) -> str | None:
        return self.stream.sites.label(_born(base))

    def use(self, array: Any, event: Event, label: str) -> None:
        """A recorded operation (or the backward call) is given what such operations wrote."""
        reader = {
            "stack": event.stack,
            "kernel": event.details.get("kernel") or event.kind,
            "argument": label,
        }
        open_keys = set(getattr(arrays.root(array), "_warplint_producers", ()))
        seen: set[tuple] = set()
        while open_keys:
            key = open_keys.pop()
            if key in seen:
                continue
            seen.add(key)
            cause = self.producers[key]
            cause["reader"] = cause["reader"] or reader
            self.causes[key] = cause
            open_keys |= cause["from"]

    def attach(self, tape: Any) -> None:
        for adjoint, tapes in self.waiting:
            if id(tape) not in tapes:
                tapes.add(id(tape))
                tape.launches.append(adjoint(tape))

    def found(self) -> list[dict[str, Any]]:
        return [
            {
                **{k: v for k, v in cause.items() if k not in ("from", "copies")},
                "running": self.is_running(key, set()),
            }
            for key, cause in self.causes.items()
            if not self.is_recomputed(key, set())
        ]

    def is_recomputed(self, key: tuple, seen: set[tuple]) -> bool:
        """Whether the same statement runs again on a tape (checkpointing), or copies what such
        statements made: then it is the hand-over between the tapes that counts."""
        cause = self.producers[key]
        # Given a copy where the tape is given the parameter, it computes something else.
        again = key in self.recorded and cause["copies"].isdisjoint(self.recorded[key])
        if again or key in seen:
            return True
        seen.add(key)
        copies = is_copy(cause) and bool(cause["from"]) and not cause["direct"]
        return copies and all(self.is_recomputed(source, seen) for source in cause["from"])

    def is_running(self, key: tuple, seen: set[tuple]) -> bool:
        """Whether an operation keeps a state that is carried from pass to pass off the tape (an
        average, a lagging copy), or computes something from such states alone."""
        cause = self.producers[key]
        if cause["running"] or key in seen:
            return True
        seen.add(key)
        return (
            bool(cause["from"])
            and not cause["direct"]
            and all(self.is_running(source, seen) for source in cause["from"])
        )


def is_copy(cause: dict[str, Any]) -> bool:
    return cause["operation"] in ("copy", "assign")


def _born(base: Any) -> tuple:
    born = arrays.birth(base)
    return tuple(born.stack) if born is not None else ()


def _adjoint(event: Event) -> Callable[[Any], Callable[[], None]]:
    """What a tape would have run backwards for this operation, at the values it is given now."""
    given = [(a, arrays.content(a)) for _, a in event.arrays]

    def on(tape: Any) -> Callable[[], None]:
        for array in [a for a, _ in given] + [a for a in (event.source, event.target) if arrays.is_array(a)]:
            if array.grad is not None:
                tape.gradients[array] = array.grad  # so that tape.zero() reaches it

        def run() -> None:
            held = [(array, arrays.content(array)) for array, _ in given]
            for array, data in given:
                arrays.put(array, data)
            try:
                _ADJOINTS[event.kind](event, tape)
            finally:
                for array, data in held:
                    arrays.put(array, data)

        return run

    return on


def _launch_adjoint(event: Event, tape: Any) -> None:
    call = event.details["call"]
    context.launch(
        kernel=call["kernel"],
        dim=call["dim"],
        inputs=call["inputs"],
        outputs=call["outputs"],
        adj_inputs=[tape.get_adjoint(a) for a in call["inputs"]],
        adj_outputs=[tape.get_adjoint(a) for a in call["outputs"]],
        device=call["device"],
        adjoint=True,
        max_blocks=call["max_blocks"],
        block_dim=call["block_dim"],
    )


def copy_adjoint(event: Event, tape: Any) -> None:
    target, source = event.target, event.source
    if target.grad is None or source.grad is None:
        return
    left, right = arrays.memory(target.grad), arrays.memory(source.grad)
    if "indexed" in event.details:
        into, out_of = (arrays.indexed(array)[1] for array in event.details["indexed"])
        given = left[into].copy()
        left[into] = 0
        np.add.at(right, out_of, given.reshape(right[out_of].shape))
        return
    start, origin, count = event.details.get("part", (0, 0, 0))
    if count == 0 and start == 0 and origin == 0 and left.size == right.size:
        right += left.reshape(right.shape)
        left[...] = 0
        return
    left, right = left.reshape(-1, *left.shape[target.ndim :]), right.reshape(-1, *right.shape[source.ndim :])
    count = count or len(right)
    right[origin : origin + count] += left[start : start + count]
    left[start : start + count] = 0


def _reduce_adjoint(event: Event, tape: Any) -> None:
    call = event.details["call"]
    out = call.get("out_array", call.get("out"))
    if out is None or out.grad is None:
        return
    seed = arrays.memory(out.grad)
    name = event.details["kernel"]
    if name == "array_scan":
        _pull_back_scan(call, seed)
    elif name == "array_sum":
        _pull_back_sum(call, call["values"], seed, None)
    else:
        _pull_back_sum(call, call["a"], seed, arrays.memory(call["b"]))
        _pull_back_sum(call, call["b"], seed, arrays.memory(call["a"]))
    seed[...] = 0


def _pull_back_sum(call: dict[str, Any], array: Any, seed: Any, weight: Any) -> None:
    """Spreads the adjoint of a sum over its terms (times the other factor of a product)."""
    if array.grad is None:
        return
    gradient = arrays.memory(array.grad)
    components = (1,) * (gradient.ndim - array.ndim) if weight is not None else gradient.shape[array.ndim :]
    axis, count = call.get("axis"), call.get("value_count", call.get("count"))
    kept = [1 if axis is None or k == axis % array.ndim else n for k, n in enumerate(array.shape)]
    part = np.broadcast_to(seed.reshape((*kept, *components)), gradient.shape)
    if weight is not None:
        part = part * weight
    if axis is None and count is not None:
        terms = np.arange(array.size).reshape(array.shape + (1,) * (gradient.ndim - array.ndim))
        part = np.where(terms < count, part, 0.0)
    gradient += part


def _pull_back_scan(call: dict[str, Any], seed: Any) -> None:
    array = call["in_array"]
    if array.grad is None:
        return
    tail = np.cumsum(seed[::-1], axis=0)[::-1]
    if not call.get("inclusive", True):
        tail = np.concatenate([tail[1:], np.zeros_like(tail[:1])])
    arrays.memory(array.grad)[...] += tail


_ADJOINTS = {
    "launch": _launch_adjoint,
    "copy": copy_adjoint,
    "assign": copy_adjoint,
    "reduce": _reduce_adjoint,
}
