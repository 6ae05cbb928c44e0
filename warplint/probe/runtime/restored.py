"""Versions of an array that are put aside, overwritten and put back: hand-written checkpointing.

A forward pass by segments saves the state at each segment's start and goes on in the same buffers;
the backward pass puts each one back before it records the segment. What is put back is no new
version: an episode that began when its parameter was first read goes on.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from .structure import Episode

CHAIN = 8
"""Arrays that one content is followed through."""
HOST_READS = 64
"""Versions of one array that are remembered as read by the host."""


@dataclass
class _Saved:
    """Content that lies in another array or on the host, and the versions of arrays that it was."""

    versions: list[tuple[weakref.ref, Episode]]
    digest: int

    def of(self, array: Any) -> Episode | None:
        """The version of ``array`` that it was."""
        return next((episode for origin, episode in self.versions if origin() is array), None)


class Restorations:
    """Which versions were saved, and which array holds which of them."""

    def __init__(self) -> None:
        self.copies: dict[int, tuple[weakref.ref, _Saved]] = {}
        """By identity of the array that holds the copy."""
        self.read: dict[int, list[_Saved]] = {}
        """Versions that the host has read, by identity of their array (some may be of an earlier one)."""
        self.due: dict[int, tuple[weakref.ref, Episode]] = {}
        """By identity: the array, and the version that was just put back into it."""

    def note_copy(self, target: Any, source: Any, episode: Episode | None, digest: int | None) -> None:
        """``target`` was set to what ``source`` holds, off the tape."""
        self.due.pop(id(target), None)
        self.copies.pop(id(target), None)
        known = self._held(source, digest)
        version = known.of(target) if known is not None else None
        if version is not None:
            self.due[id(target)] = (weakref.ref(target), version)
        elif episode is not None and digest is not None:
            before = known.versions[: CHAIN - 1] if known is not None else []
            saved = _Saved([(weakref.ref(source), episode), *before], digest)
            self.copies[id(target)] = (weakref.ref(target), saved)

    def _held(self, array: Any, digest: int | None) -> _Saved | None:
        reference, saved = self.copies.get(id(array), (None, None))
        if reference is None or saved is None or reference() is not array:
            return None
        return saved if saved.digest == digest else None

    def note_host_read(self, array: Any, episode: Episode | None, digest: int | None) -> None:
        if episode is not None and digest is not None:
            known = self.read.setdefault(id(array), [])
            if not known or known[-1].of(array) is not episode:
                known.append(_Saved([(weakref.ref(array), episode)], digest))
                del known[:-HOST_READS]

    def note_host_write(self, array: Any, digest: int | None, constant: bool) -> None:
        """The host has set ``array``; what was read of it before may be what is put back.

        Not if all its elements are alike: that is how states are reset.
        """
        self.due.pop(id(array), None)
        for saved in self.read.get(id(array), ()) if not constant else ():
            version = saved.of(array)
            if saved.digest == digest and version is not None:
                self.due[id(array)] = (weakref.ref(array), version)

    def forget(self, array: Any) -> None:
        """Something else has written to ``array``."""
        self.due.pop(id(array), None)

    def version(self, array: Any) -> Episode | None:
        """The version that was put back, if its gradient was not used yet and a launch has read it."""
        reference, episode = self.due.pop(id(array), (None, None))
        if reference is None or episode is None or reference() is not array:
            return None
        usable = episode.launched and not episode.reads and not episode.complete
        return episode if usable else None

    def pending(self) -> bool:
        """Whether a version that was saved for later may still be put back."""
        for reference, saved in self.copies.values():
            for origin, episode in saved.versions if reference() is not None else ():
                waiting = not episode.reads and not episode.complete and episode.superseded
                if waiting and episode.launched and origin() is not None:
                    return True
        return False
