"""Which arrays of the measured episode depend on the parameter, as far as operations tell."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..hooks import Event


class Activity:
    """Follows the parameter through launches, copies and reductions, recorded or not.

    What host code makes of a value that it read cannot be followed: after such a read everything
    that comes from the host is taken to depend on the parameter too.
    """

    def __init__(self) -> None:
        self.on_host = False

    def start(self, parameter: Any) -> None:
        if parameter is not None:
            arrays.root(parameter)._warplint_active = True

    def before(self, event: Event) -> None:
        """Remembers contents, so that ``after`` can tell which arrays the operation changed."""
        if event.kind in ("launch", "reduce", "library") and self.reads_active(event):
            event.details["digests"] = [(base, hash(arrays.content(base))) for base in self.bases(event)]

    def after(self, event: Event) -> None:
        """Marks what an operation with an active input wrote; lists it in ``details``."""
        if event.kind in ("launch", "reduce", "library"):
            before = event.details.pop("digests", ())
            changed = [base for base, digest in before if hash(arrays.content(base)) != digest]
            event.details["changed"] = changed
            for base in changed:
                base._warplint_active = True
        elif event.kind in ("copy", "assign") and arrays.is_array(event.target):
            source = event.source
            if is_active(source) if source is not None else self.on_host:
                arrays.root(event.target)._warplint_active = True
        elif event.kind == "fill" and self.on_host:
            arrays.root(event.target)._warplint_active = True
        elif event.kind == "read" and is_active(event.target):
            self.on_host = True

    def born(self, array: Any) -> None:
        if self.on_host and getattr(array, "_warplint_from_host", False):
            array._warplint_active = True

    def reads_active(self, event: Event) -> bool:
        return any(is_active(a) for _, a in event.arrays) or (self.on_host and bool(event.arrays))

    @staticmethod
    def bases(event: Event) -> list[Any]:
        found = {}
        for _, array in event.arrays:
            base = arrays.root(array)
            if arrays.is_float(array) and arrays.gradient_owner(base) is None:
                found[id(base)] = base
        return list(found.values())


def is_active(array: Any) -> bool:
    """Whether an array's content depends on the parameter."""
    base = arrays.root(array)
    # What the owner of shared memory makes of it is not seen.
    return bool(getattr(base, "_warplint_active", False) or getattr(base, "_warplint_alias", False))
