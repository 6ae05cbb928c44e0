"""The numbers a program shows of itself: printed, returned, kept in a variable, read from an array.

Each is named by its place and occurrence, so that the same number is found again in another run.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays
from .hooks import Event
from .sites import Sites

NAMED = re.compile(r"(?<![a-z])(loss|cost|objective|mse|sse|misfit)(es|s)?(?![a-z])")
"""Names of numbers that a program says it minimizes."""
_IN_TEXT = re.compile(r"(?:([A-Za-z_][A-Za-z_ ]*?)\W{0,4})?(-?\d+\.\d+(?:[eE][-+]?\d+)?)")
MOST = 400
"""Numbers that are looked at in one run."""


def is_objective_name(name: str | None) -> bool:
    return bool(name and NAMED.search(name.lower().replace("_", " ")))


def names(label: str, name: str | None) -> bool:
    """Whether a name means what bears this label: the whole of it, or the last name in it."""
    return name is not None and name in (label, label.rsplit(".", 1)[-1])


class Figure:
    """One number: its value, what the program calls it, and its last digit."""

    __slots__ = ("digit", "line", "name", "value")

    def __init__(self, value: float, name: str, digit: float, line: tuple) -> None:
        self.value, self.name, self.digit, self.line = value, name, digit, line


class Figures:
    """Collects the numbers of one run until :meth:`close`."""

    def __init__(self, sites: Sites, named: str | None = None) -> None:
        self.sites = sites
        self.named = named
        """The name of the objective where the user gave one; else names that sound like one are noted."""
        self.found: dict[tuple, Figure] = {}
        self.counts: dict[tuple, int] = {}
        self.print: Callable[..., Any] = builtins.print

    def open(self) -> None:
        builtins.print = self.printed
        sys.setprofile(self.profile)

    def close(self) -> None:
        sys.setprofile(None)
        builtins.print = self.print
        frame = sys._getframe(1)
        while frame is not None:
            self.note_locals(frame, "frame")
            frame = frame.f_back  # type: ignore[assignment]

    def is_wanted(self, name: str) -> bool:
        return name == self.named if self.named is not None else is_objective_name(name)

    # -- where numbers are met -------------------------------------------------------------

    def printed(self, *values: Any, **options: Any) -> None:
        stack = self.sites.stack(2)
        place = ("print", *(stack[0][:2] if stack else ("?", 0)))
        occurrence = self.count(place)
        name = ""
        for position, value in enumerate(values):
            if isinstance(value, str):
                name = self.note_text(value, (*place, occurrence, position))
            else:
                self.note(value, name, (*place, occurrence, position))
        self.print(*values, **options)

    def note_text(self, text: str, key: tuple) -> str:
        """Numbers with decimals in a text; what follows the last of them names the next value."""
        for number, match in enumerate(_IN_TEXT.finditer(text)):
            decimals = len(match.group(2).partition(".")[2].lower().partition("e")[0])
            scale = 10.0 ** (int(match.group(2).lower().partition("e")[2] or 0) - decimals)
            name = (match.group(1) or "").strip()
            self.add((*key, number), Figure(float(match.group(2)), name, scale, key[1:3]))
        return text.strip().rstrip(":=").strip()

    def profile(self, frame: Any, event: str, result: Any) -> None:
        if event != "return" or self.sites.name(frame.f_code.co_filename) is None:
            return
        if self.is_wanted(frame.f_code.co_name):
            place = ("return", self.sites.name(frame.f_code.co_filename), frame.f_lineno)
            self.note(result, frame.f_code.co_name, (*place, self.count(place), 0))
        self.note_locals(frame, "local")

    def note_locals(self, frame: Any, kind: str) -> None:
        file = self.sites.name(frame.f_code.co_filename)
        if file is None:
            return
        place = (kind, file, frame.f_code.co_firstlineno)
        occurrence = self.count(place)
        for name, value in list(frame.f_locals.items()):
            if self.is_wanted(name) and isinstance(value, (float, np.floating)):
                self.add((*place, occurrence, name), Figure(float(value), name, 0.0, (file, frame.f_lineno)))

    def read(self, event: Event) -> None:
        """An array of one number that the host reads."""
        target = event.target
        single = arrays.is_array(target) and target.size == 1 and arrays.is_float(target)
        if single and arrays.gradient_owner(target) is None:
            born = arrays.birth(arrays.root(target))
            name = self.sites.label(born.stack) if born is not None else None
            self.note(arrays.values(target), name or "", ("read", *event.name, 0))

    def read_array(self, births: arrays.Births) -> None:
        """The array of one number that bears the objective's name, the youngest if there are several."""
        found: dict[int, tuple[Any, str, tuple]] = {}
        for array in list(births.live.values()):
            born = arrays.birth(array)
            if born is None or not born.stack or not arrays.is_float(array) or array.size != 1:
                continue
            label = self.sites.label(born.stack)
            if label is not None and names(label, self.named):
                found[born.ordinal] = (array, label, born.stack[0][:2])
        if found:
            array, label, place = found[max(found)]
            self.note(arrays.values(array), label, ("array", *place, 0))

    # -- keeping ---------------------------------------------------------------------------

    def count(self, place: tuple) -> int:
        self.counts[place] = self.counts.get(place, 0) + 1
        return self.counts[place]

    def note(self, value: Any, name: str, key: tuple) -> None:
        """A value that is one floating-point number."""
        if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind == "f":
            value = value.reshape(-1)[0]
        if isinstance(value, (float, np.floating)):
            single = isinstance(value, (np.float32, np.float16))
            digit = float(np.finfo(np.float32).eps) * abs(float(value)) if single else 0.0
            self.add(key, Figure(float(value), name, digit, key[1:3]))

    def add(self, key: tuple, figure: Figure) -> None:
        if len(self.found) < MOST and np.isfinite(figure.value):
            self.found.setdefault(key, figure)
