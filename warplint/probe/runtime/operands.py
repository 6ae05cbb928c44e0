"""Which arrays an event was handed, and which of them it may read."""

from __future__ import annotations

from typing import Any

from . import arrays
from .hooks import Event
from .kernels import may_read


def touched(event: Event) -> list[Any]:
    """Every array an event was handed."""
    found = [a for _, a in event.arrays]
    for array in (event.target, event.source):
        if arrays.is_array(array):
            found.append(array)
    return found


def reads_array(event: Event, array: Any) -> bool:
    """Whether the event reads ``array`` (rather than only overwriting it)."""
    if event.kind in ("zero", "fill"):
        return False
    if event.kind in ("copy", "assign"):
        return array is event.source
    return event.kind in ("launch", "reduce", "read", "export")


def uses(event: Event, base: Any) -> bool:
    """Whether an event may use what an array holds: a launch may be given a struct for another field."""
    if event.kind != "launch":
        return True
    kernel = event.details["object"]
    return any(may_read(kernel, label) for label, a in event.arrays if arrays.root(a) is base)
