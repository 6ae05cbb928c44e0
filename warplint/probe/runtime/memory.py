"""How much memory the arrays of a program take, before they take too much of it."""

from __future__ import annotations

import math
import os
from typing import Any

from . import arrays

LOOK_AFTER = 32 << 20
"""Bytes of new arrays after which the process is asked how much memory it has."""


class Memory:
    """Counts arrays by where they are made; ``limit`` is what the process may have."""

    def __init__(self, limit: float = math.inf) -> None:
        self.limit = limit
        self.families: dict[tuple, tuple[int, int]] = {}
        """Arrays and bytes."""
        self.new = 0
        """Bytes since the process was last looked at."""

    def note(self, array: Any) -> None:
        """An array is born; its gradient takes as much again."""
        size = int(array.capacity or 0) * (2 if array.requires_grad else 1)
        born = arrays.birth(array)
        if born is not None:
            count, total = self.families.get(born.family, (0, 0))
            self.families[born.family] = (count + 1, total + size)
            self.new += size

    def exceeded(self) -> bool:
        """Whether the process has more than it may."""
        if self.new < LOOK_AFTER or self.limit == math.inf:
            return False
        self.new = 0
        return resident() > self.limit

    def per_step(self) -> dict[str, float]:
        """Arrays that are made again and again: how often, and the bytes of one round."""
        steps = max(count for count, _ in self.families.values())
        size = sum(size for count, size in self.families.values() if 2 * count > steps)
        return {"bytes": size / steps, "steps": float(steps)}


def resident() -> float:
    """Bytes of memory that this process has."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0.0
