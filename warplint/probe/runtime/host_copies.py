"""Contents that come from the host, which a finite difference may hold constant."""

from __future__ import annotations

from typing import Any

from . import arrays
from .hooks import Event
from .sites import Sites


class HostCopies:
    """Contents that came from the host while no tape was recording, by birth or event name.

    Held at their unperturbed values, they make a finite difference that treats them as
    constants: what a deliberately detached target or window start is.
    """

    def __init__(self) -> None:
        self.births: dict[tuple, bytes] = {}
        self.events: dict[tuple, bytes] = {}
        self.changed: set[tuple] = set()
        """Births and events whose content depends on the parameter."""

    def note_birth(self, array: Any) -> None:
        if self._from_host(array):
            self.births[array._warplint_birth.serial] = arrays.content(array)

    def note(self, event: Event) -> None:
        if self._written_from_host(event):
            self.events[event.name] = arrays.content(event.target)

    def hold_birth(self, array: Any) -> None:
        serial = array._warplint_birth.serial
        data = self.births.get(serial)
        if data is not None and self._from_host(array) and arrays.content(array) != data:
            self.changed.add(serial)
            arrays.put(array, data)

    def hold(self, event: Event) -> None:
        data = self.events.get(event.name)
        if data is not None and self._written_from_host(event) and arrays.content(event.target) != data:
            self.changed.add(event.name)
            arrays.put(event.target, data)

    def __bool__(self) -> bool:
        return bool(self.births or self.events)

    def places(self, sites: Sites) -> list[tuple[str, int, str]]:
        """Where the copies were made: (file, line, the name they were given)."""
        found = {}
        for serial in self.births:
            stack = serial[0][0]
            if stack and serial in self.changed:
                found[stack[0][:2]] = sites.label(stack) or "an array"
        for name in self.events:
            if name in self.changed:
                found[name[:2]] = "an array"
        return [(file, line, name) for (file, line), name in sorted(found.items())]

    @staticmethod
    def _from_host(array: Any) -> bool:
        return (
            getattr(array, "_warplint_from_host", False)
            and not arrays.recording()
            and bool(array.ptr)
            and arrays.is_float(array)
        )

    @staticmethod
    def _written_from_host(event: Event) -> bool:
        return (
            event.kind == "assign"
            and event.source is None
            and event.tape is None
            and arrays.is_float(event.target)
            and arrays.gradient_owner(event.target) is None
        )
