"""Arrays between the parameter and the objective that carry no gradient."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind


class MissingGradient(Kind):
    """Lets the arrays of the selected allocation sites be born with ``requires_grad=True``."""

    NAME = "no-gradient"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.produced: dict[int, Any] = {}
        self.causes: dict[tuple, dict[str, Any]] = {}

    def prepare(self) -> None:
        self.stream.forced_gradients = frozenset(k[1] for k in self.run.removed if k[0] == self.NAME)

    def before(self, event: Event) -> None:
        if not self.run.started or event.kind != "launch" or event.tape is None:
            return
        digests = {}
        for label, array in event.arrays:
            base = arrays.root(array)
            if array.requires_grad or not arrays.is_float(array) or arrays.gradient_owner(base) is not None:
                continue
            if id(base) in self.produced and event.recorded:
                self.note(base, event, label)
            digests[id(base)] = (base, hash(arrays.content(base)))
        event.details["plain"] = digests

    def after(self, event: Event) -> None:
        if not self.run.started or event.tape is None:
            return
        if event.kind == "launch":
            for key, (base, digest) in event.details.pop("plain", {}).items():
                if hash(arrays.content(base)) != digest:
                    self.produced.setdefault(key, (base, event.stack, event.details["kernel"]))
        elif event.kind in ("copy", "assign") and event.source is not None:
            base = arrays.root(event.target)
            if arrays.is_array(base) and not base.requires_grad and arrays.is_float(base):
                self.produced.setdefault(id(base), (base, event.stack, event.kind))

    def note(self, base: Any, event: Event, label: str) -> None:
        born = arrays.birth(base)
        if born is None or born.family in self.causes:
            return
        _, writer_stack, writer = self.produced[id(base)]
        self.causes[born.family] = {
            "key": (self.NAME, born.family),
            "stack": born.stack,
            "buffer": self.stream.sites.label(born.stack),
            "writer": {"stack": writer_stack, "kernel": writer},
            "reader": {"stack": event.stack, "kernel": event.details["kernel"], "argument": label},
        }

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())
