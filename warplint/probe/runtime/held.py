"""What goes from an array through the host, held constant: a finite difference without that path."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arrays
from .hooks import Event

LIMIT = 1 << 28
"""Bytes of what the host read after which no more is remembered."""


class HostReads:
    """What the host read of arrays (``numpy()``, ``float()``, sums), by the reading event's name.

    Filled in an unperturbed run; in perturbed ones the reads of the chosen places hand out the
    same again.
    """

    def __init__(self) -> None:
        self.values: dict[tuple, Any] = {}
        self.size = 0
        self.places: set[tuple] | None = None
        """(file, line) of the reads to hold; None for all of them."""
        self.changed: dict[tuple, dict[str, Any]] = {}
        """Reads whose value depends on the parameter, with how often backward had run by then and where."""

    def note(self, event: Event, result: Any) -> None:
        if is_host_read(event, result) and self.size < LIMIT:
            self.values[event.name] = value = np.array(result)
            self.size += value.nbytes

    def hold(self, event: Event, result: Any, backwards: int, passed: tuple) -> Any:
        value = self.values.get(event.name)
        if value is None or not is_host_read(event, result):
            return result
        now = np.asarray(result)
        if now.shape != value.shape or now.tobytes() == value.tobytes():
            return result
        self.changed[event.name] = {
            "stack": event.stack,
            "array": _array(event),
            "backwards": backwards,
            "passed": passed,
        }
        if self.places is not None and event.name[:2] not in self.places:
            return result
        return value.copy() if isinstance(result, np.ndarray) else type(result)(value.tolist())


def is_host_read(event: Event, result: Any) -> bool:
    """Whether an event hands floating-point values of an array that is no gradient to the host."""
    if event.kind == "reduce":
        return isinstance(result, (float, np.floating)) and all(
            arrays.gradient_owner(a) is None for _, a in event.arrays
        )
    return (
        event.kind == "read"
        and isinstance(result, np.ndarray)
        and arrays.is_float(event.target)
        and arrays.gradient_owner(event.target) is None
    )


def _array(event: Event) -> tuple:
    """Where the array that was read was born."""
    array = event.target if event.kind == "read" else event.arrays[0][1]
    born = arrays.birth(arrays.root(array))
    return tuple(born.stack) if born is not None else ()
