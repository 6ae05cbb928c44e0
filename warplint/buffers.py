"""Text that an editor holds and has not saved: it is read in the place of what is on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["below", "held", "hold"]

_held: dict[Path, bytes] = {}


def hold(texts: Mapping[Path, bytes]) -> None:
    """From now on these files, by absolute path, consist of these bytes; all others are on the disk."""
    _held.clear()
    _held.update(texts)


def held(path: Path) -> bytes | None:
    """What the editor holds of a file, if it is open there."""
    return _held.get(path)


def below(directory: Path) -> dict[Path, bytes]:
    """The held files that lie in a directory or deeper."""
    return {path: data for path, data in _held.items() if path.is_relative_to(directory)}
