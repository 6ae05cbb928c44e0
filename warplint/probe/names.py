"""What parameters are called in messages: by the user's name, and by more where several have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

Key = tuple[str, tuple[Any, ...], Any]


def parameter_key(row: dict[str, Any]) -> Key:
    """What tells one parameter from another."""
    return (row["parameter"], tuple(row["place"]), row["variable"])


class ParameterNames:
    """The names of the parameters of one program; ``display`` makes a path the user's."""

    def __init__(self, rows: Sequence[dict[str, Any]], display: Callable[[str], str]) -> None:
        keys = list(dict.fromkeys(parameter_key(row) for row in rows))
        names = Counter(name for name, _, _ in keys)
        places = Counter((name, place) for name, place, _ in keys)
        made: Counter[tuple[str, tuple[Any, ...]]] = Counter()
        self._where: dict[Key, str] = {}
        for key in keys:
            name, place, _ = key
            made[name, place] += 1
            where = f"{display(place[0])}:{place[1]}"
            if places[name, place] > 1:
                where += f", array {made[name, place]}"
            self._where[key] = f" ({where})" if names[name] > 1 else ""

    def plain(self, row: dict[str, Any]) -> str:
        """As in a table: ``a``, or ``a (train.py:3)`` where there are two of the name."""
        return f"{row['parameter']}{self._where.get(parameter_key(row), '')}"

    def quoted(self, row: dict[str, Any]) -> str:
        """As in a sentence: the name in backticks."""
        return f"`{row['parameter']}`{self._where.get(parameter_key(row), '')}"
