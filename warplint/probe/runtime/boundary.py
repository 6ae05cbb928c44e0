"""Where the next version of a parameter begins."""

from __future__ import annotations

from typing import Any

from . import arrays
from .hooks import Event
from .operands import touched
from .structure import Episode


class Boundary:
    """Where the next version of a parameter begins, in a run that may be perturbed.

    The name alone does not do: an adaptive loop that takes another turn moves the occurrence of
    its launches. So the parameter must have been written since as well, or be another array; and
    a recorded launch that reads it after it was written off the tape has begun the next version
    whatever its name. A parameter that is put aside and put back (``episode.resumed``) is written
    many times in between.
    """

    def __init__(self, episode: Episode, parameter: Any) -> None:
        self.name = episode.next_start
        same = parameter is not None and episode.next_serial in (None, episode.serial)
        self.parameter = parameter if same else None
        self.content = hash(arrays.content(parameter)) if same else 0
        self.written = False
        self.away = episode.resumed
        """The event at which the parameter is back; None from there on."""
        self.lost = False
        """Whether what was put back is not what was put aside."""

    def before(self, event: Event) -> None:
        if self.away is not None and event.name == self.away:
            self.away = None
            self.lost = self.parameter is not None and self.changed()

    def after(self, event: Event) -> None:
        away = self.away is not None or event.recorded or event.kind == "read"
        if self.parameter is None or self.written or away:
            return
        if any(arrays.root(a) is self.parameter for a in touched(event)):
            self.written = self.changed()

    def reached(self, event: Event) -> bool:
        if event.name == self.name:
            return self.parameter is None or self.changed()
        if self.away is not None or not (self.written and event.recorded and self.name is not None):
            return False
        return any(arrays.root(a) is self.parameter for a in touched(event))

    def changed(self) -> bool:
        return hash(arrays.content(self.parameter)) != self.content
