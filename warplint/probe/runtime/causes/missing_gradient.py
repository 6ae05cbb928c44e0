"""Arrays between the parameter and the objective that carry no gradient."""

from __future__ import annotations

from typing import Any

from warp._src import types as wptypes

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind


class MissingGradient(Kind):
    """Lets the arrays of the selected allocation sites be born with ``requires_grad=True``.

    A view without a gradient on memory that has one (taken before the flag was set, or made from
    a pointer) is given its part of that gradient instead.
    """

    NAME = "no-gradient"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: dict[tuple, dict[str, Any]] = {}

    def prepare(self) -> None:
        born = [k for k in self.run.removed if k[0] == self.NAME and k[2] == "array"]
        self.stream.forced_gradients = frozenset(k[1] for k in born)

    def before(self, event: Event) -> None:
        if not self.run.started or event.kind not in ("launch", "copy", "assign") or _is_update(event):
            return
        given = event.arrays or [("", a) for a in (event.target, event.source) if arrays.is_array(a)]
        for label, array in given:
            base = arrays.root(array)
            if event.recorded:
                self.causes = {**getattr(base, "_warplint_upstream", {}), **self.causes}
            if array.requires_grad or not arrays.is_float(array):
                continue
            owner = self.owner_of(array, base)
            if owner is not None:
                self.link(array, owner, event, label)
            elif event.recorded and hasattr(base, "_warplint_written"):
                self.note(base, event, label, base._warplint_written)

    def after(self, event: Event) -> None:
        if not self.run.started or _is_update(event):
            return
        written = event.details.get("changed", ())
        if event.kind in ("copy", "assign") and event.source is not None:
            written = [arrays.root(event.target)]
        if not event.recorded:
            self.carry(event, written)
        for base in written:
            if arrays.is_float(base) and not base.requires_grad and not hasattr(base, "_warplint_written"):
                base._warplint_written = (event.stack, event.details.get("kernel") or event.kind)

    def carry(self, event: Event, written: Any) -> None:
        """Arrays without a gradient that an operation off the tape reads matter where its result does."""
        upstream: dict[tuple, dict[str, Any]] = {}
        for label, array in [*event.arrays, ("", event.source)]:
            if not arrays.is_array(array):
                continue
            base = arrays.root(array)
            upstream.update(getattr(base, "_warplint_upstream", {}))
            if arrays.is_float(array) and not array.requires_grad and hasattr(base, "_warplint_written"):
                cause = self.cause(base, event, label, base._warplint_written)
                upstream.setdefault(cause["key"][1], cause)
        for base in written:
            base._warplint_upstream = {**getattr(base, "_warplint_upstream", {}), **upstream}

    def owner_of(self, array: Any, base: Any) -> Any:
        """The array with a gradient on whose memory this one without lies."""
        if base is not array and base.requires_grad and base.grad is not None:
            return base
        if not getattr(base, "_warplint_alias", False):
            return None
        start, end = arrays.interval(array)
        for other in list(self.stream.births.live.values()):
            if other is base or not other.requires_grad or not other.ptr or other.grad is None:
                continue
            low, high = arrays.interval(other)
            if low <= start and end <= high:
                return other
        return None

    def link(self, array: Any, owner: Any, event: Event, label: str) -> None:
        born = arrays.birth(array)
        if born is None or not event.tape:
            return
        cause = self.note(array, event, label, (owner._warplint_birth.stack, None), "view")
        cause["view_of"] = self.stream.sites.label(owner._warplint_birth.stack)
        if self.removes(cause["key"]):
            array.grad = wptypes.array(
                ptr=owner.grad.ptr + (array.ptr - owner.ptr),
                dtype=array.dtype,
                shape=array.shape,
                strides=array.strides,
                device=array.device,
            )

    def note(self, base: Any, event: Event, label: str, writer: tuple, what: str = "array") -> dict[str, Any]:
        cause = self.cause(base, event, label, writer, what)
        return self.causes.setdefault(cause["key"][1], cause)

    def cause(
        self, base: Any, event: Event, label: str, writer: tuple, what: str = "array"
    ) -> dict[str, Any]:
        born = arrays.birth(base)
        stack = born.stack if born is not None else ()
        return {
            "key": (self.NAME, born.family if born is not None else (), what),
            "stack": stack,
            "buffer": self.stream.sites.label(stack),
            "view_of": None,
            "writer": {"stack": writer[0], "kernel": writer[1]},
            "reader": {
                "stack": event.stack,
                "kernel": event.details.get("kernel") or event.kind,
                "argument": label,
            },
        }

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def _is_update(event: Event) -> bool:
    """Whether a gradient takes part: the optimizer's own work."""
    given = [a for _, a in event.arrays] + [event.target, event.source]
    return any(arrays.is_array(a) and arrays.gradient_owner(a) is not None for a in given)
