"""Gradients read at the wrong time: before the pass, after a reset, or as a view that changes."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event
from ..operands import reads_array, touched
from .base import CounterfactualRun, Kind


class StaleReads(Kind):
    """Hands on what the backward passes of the episode added to the parameter's gradient."""

    NAME = "stale-gradient"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.before_pass: Any = None
        self.contributed: Any = None
        """What the passes of the episode added to the parameter's gradient so far."""
        self.left_resets = 0
        self.causes: dict[tuple, dict[str, Any]] = {}

    @property
    def gradient_array(self) -> Any:
        return self.run.parameter.grad if self.run.parameter is not None else None

    def before(self, event: Event) -> None:
        if not self.run.started:
            return
        gradient = self.gradient_array
        if event.kind in ("backward", "adjoint"):
            self.before_pass = arrays.values(gradient) if gradient is not None else None
            return
        old = {r.name for r in self.run.episode.reads if r.kind == "old"}
        for array in touched(event):
            other = arrays.is_gradient(array) and arrays.gradient_owner(array) is not self.run.parameter
            if event.name in old and other:
                self.note(event, "old", None)
            if reads_array(event, array) and arrays.gradient_owner(array) is self.run.parameter:
                self.note_read(event, array)

    def after(self, event: Event) -> None:
        if not self.run.started or event.kind not in ("backward", "adjoint"):
            return
        gradient = self.gradient_array
        if gradient is None:
            return
        now = arrays.values(gradient)
        same = self.before_pass is not None and self.before_pass.shape == now.shape
        added = now - self.before_pass if same else now
        if not added.any():
            return
        self.contributed = added if self.contributed is None else self.contributed + added
        self.left_resets = arrays.resets(gradient)

    def note_read(self, event: Event, array: Any) -> None:
        if self.run.measured.stale_view and event.kind == "read":
            self.note(event, "view", self.run.measured.changed_by)
        elif self.contributed is None:
            if not self.run.passes:
                self.note(event, "early", None)
        elif arrays.resets(array) != self.left_resets:
            now = arrays.values(arrays.root(array))
            # Only an empty one is stale: clipped or scaled it is what the optimizer is meant to get.
            if not now.any():
                self.note(event, "emptied", arrays.reset_by(array))

    def note(self, event: Event, how: str, by: Any) -> None:
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        key = (self.NAME, how, file, line)
        self.causes.setdefault(key, {"key": key, "stack": event.stack, "how": how, "by": by})

    def gradient(self, consumed: Any) -> Any:
        for key, cause in self.causes.items():
            if cause["how"] == "view":
                if not self.removes(key):
                    return self.run.measured.gradient
            elif self.removes(key) and self.contributed is not None:
                return self.contributed
        return consumed

    def found(self) -> list[dict[str, Any]]:
        for cause in self.causes.values():
            cause["parameter"] = self.run.name_of(self.run.parameter)
        return list(self.causes.values())
