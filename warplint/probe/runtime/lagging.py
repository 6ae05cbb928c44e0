"""Copies of a parameter that stay in use when the parameter has moved on: target networks, anchors."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from . import arrays

Digest = Callable[[Any], "int | None"]


class Lagging:
    """Finds arrays that were copied from a parameter off the tape in an earlier iteration.

    Who wants the parameter's gradient to go through a copy makes one in every iteration. What an
    iteration takes from the parameter of an earlier one, beside the parameter itself, is a constant.
    """

    def __init__(self, digest: Digest) -> None:
        self.digest = digest
        self.copies: dict[int, _Copy] = {}
        self.found: set[tuple] = set()
        """Families of such arrays, and the (file, line) at which the host filled them."""
        self.taped: set[int] = set()
        """Arrays that recorded operations have read since the last pass."""
        self.backwards = 0

    def copied(self, source: Any, target: Any, place: tuple | None = None) -> None:
        self.copies.pop(id(target), None)
        if source is not target and source.requires_grad and arrays.is_float(source):
            digest = self.digest(source)
            if digest is not None and digest == self.digest(target):
                self.copies[id(target)] = _Copy(target, source, digest, self.backwards, place)

    def filled(self, target: Any, stack: tuple, live: Iterable[Any]) -> None:
        """The host has written an array: with what a parameter holds?"""
        for source in live:
            if source.shape == target.shape and source.dtype == target.dtype and source.ptr:
                self.copied(source, target, stack[0][:2] if stack else None)
                if id(target) in self.copies:
                    return

    def used(self, base: Any, recorded: bool) -> None:
        copy = self.copies.get(id(base))
        if copy is not None:
            copy.used = self.backwards
        if recorded:
            self.taped.add(id(base))

    def passed(self) -> None:
        """A backward pass begins: which copies from before the last one did its tape use?"""
        for key, copy in list(self.copies.items()):
            target, source = copy.target(), copy.source()
            if target is None or source is None or self.digest(target) != copy.digest:
                del self.copies[key]
                continue
            beside = copy.made < self.backwards == copy.used and id(source) in self.taped
            birth = arrays.birth(target)
            if beside and birth is not None and self.digest(source) != copy.digest:
                self.found.add(copy.place or birth.family)
        self.taped.clear()
        self.backwards += 1


class _Copy:
    __slots__ = ("digest", "made", "place", "source", "target", "used")

    def __init__(self, target: Any, source: Any, digest: int, made: int, place: tuple | None) -> None:
        self.target = weakref.ref(target)
        self.source = weakref.ref(source)
        self.digest = digest
        self.made = made
        self.place = place
        self.used = -1
