"""Makes a program shorter before it is loaded: to fit the time, the memory, or what was asked for."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from . import horizon, program
from .hooks import Stream
from .structure import Structure

MEMORY_SHARE = 0.4
"""Share of the memory limit that a program may take to be measured: its forks take as much again."""
COMFORTABLE = 0.2
"""Part of that which a program takes that was shortened to fit."""


class Shortening:
    """The numbers of the program that are replaced from now on."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.literals: list[horizon.Literal] = []

    def by_factor(self, structure: Structure, factor: float) -> bool:
        """Lets the loops around taped launches turn ``factor`` times less, if their source says how often."""
        return self._replace(structure, factor, None)

    def to_steps(self, structure: Structure, steps: int) -> str | None:
        """Makes the program take so many steps altogether; says why if that cannot be done."""
        sources = self._sources(structure)
        turns = horizon.turns(sources, structure.taped, structure.called_back)
        if not structure.backwards or (turns is not None and turns <= steps):
            return None
        if self._replace(structure, 1.0, steps):
            return None
        return (
            f"--horizon {steps}: no number was found that bounds a loop around recorded launches; "
            "--set MODULE.NAME=VALUE sets a constant of the program"
        )

    def to_memory(self, structure: Structure, kept: dict[str, float], limit: float) -> dict[str, Any]:
        """Takes as many steps as the memory holds comfortably; tells what all of them would take."""
        if not structure.taped:  # it did not come so far
            sources = self._sources(structure)
            structure.taped, structure.called_back = horizon.launching(sources), horizon.going_back(sources)
        steps = max(horizon.FEWEST, int(COMFORTABLE * MEMORY_SHARE * limit / kept["bytes"]))
        turns = horizon.turns(self._sources(structure), structure.taped, structure.called_back)
        done = self._replace(structure, 1.0, steps)
        return {"type": "memory", **kept, "limit": limit, "all": turns if done else None}

    def undo(self) -> None:
        """The shorter program told nothing: what is said of the whole one stays."""
        self.literals = []
        program.LITERALS.clear()

    def _replace(self, structure: Structure, factor: float, steps: int | None) -> bool:
        sources, taped, called = self._sources(structure), structure.taped, structure.called_back
        self.literals = horizon.shorten(sources, taped, called, factor, steps=steps)
        for literal in self.literals:
            path = os.path.realpath(self.stream.sites.path(literal.file))
            program.LITERALS.setdefault(path, []).append(literal)
        return bool(self.literals)

    def _sources(self, structure: Structure) -> dict[str, str]:
        """The text of the program's own files that were seen at work."""
        sources = {}
        for file in {file for file, _ in structure.lines if not os.path.isabs(file)}:
            with contextlib.suppress(OSError), open(self.stream.sites.path(file), encoding="utf-8") as stream:
                sources[file] = stream.read()
        return sources
