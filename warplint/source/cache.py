"""What earlier runs found out, kept by content.

One JSON file for each directory that is checked, in the user's own cache directory: never in the
checked tree, and never code. A file that is damaged, foreign or of another version is as good as
none, and a cache that cannot be written is no reason to complain.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warplint import __version__, store

__all__ = ["Cache", "digest"]

_SECTIONS = ("facts", "programs", "outcomes", "offers")
_KEPT_RUNS = 12
"""What was not used for so many runs that changed something is dropped."""
_KEPT_SECONDS = 90 * 24 * 3600
_MAX_BYTES = 60_000_000


def digest(parts: Iterable[str]) -> str:
    """A short name for a list of texts."""
    made = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.hexdigest()


class Cache:
    """Plain values by section and key; ``file`` is None where nothing is kept."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._changed = False
        self._used: set[tuple[str, str]] = set()
        self._sections: dict[str, dict[str, list[Any]]] = {name: {} for name in _SECTIONS}
        if file is not None:
            self._load(file)

    @classmethod
    def at(cls, root: Path) -> Cache:
        """The cache of what is checked from ``root``."""
        directory = store.user_directory("static")
        if directory is None:
            return cls()
        return cls(directory / f"{digest([str(root), *_producer()])}.json")

    def get(self, section: str, key: str) -> Any:
        """What is known, or None."""
        entry = self._sections[section].get(key)
        if entry is None:
            return None
        self._used.add((section, key))
        return entry[1]

    def put(self, section: str, key: str, value: Any) -> None:
        if self.file is not None:
            self._used.add((section, key))
            self._sections[section][key] = [0, value]
            self._changed = True

    def save(self) -> None:
        """Write what has changed, whole or not at all."""
        if self.file is None or not self._changed:
            return
        self._changed = False
        kept: dict[str, dict[str, list[Any]]] = {}
        for section, entries in self._sections.items():
            kept[section] = {}
            for key, (age, value) in entries.items():
                age = 0 if (section, key) in self._used else age + 1
                if age < _KEPT_RUNS:
                    kept[section][key] = [age, value]
        body = json.dumps(kept, separators=(",", ":"))
        if len(body) > _MAX_BYTES:
            return
        if store.write_text(self.file, f"{digest([body])}\n{body}"):
            _forget_old(self.file.parent)

    def _load(self, file: Path) -> None:
        try:
            if file.stat().st_size > _MAX_BYTES:
                return
            checksum, _, body = file.read_text(encoding="utf-8").partition("\n")
            if checksum != digest([body]):
                return
            stored = json.loads(body)
            for name in _SECTIONS:
                entries = stored.get(name, {})
                self._sections[name] = {
                    key: entry
                    for key, entry in entries.items()
                    if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int)
                }
        except (OSError, ValueError, AttributeError, RecursionError):
            self._sections = {name: {} for name in _SECTIONS}


def _forget_old(directory: Path) -> None:
    """Delete what no run has written for a long time: projects come and go."""
    limit = time.time() - _KEPT_SECONDS
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < limit:
                os.unlink(entry.path)


def _producer() -> list[str]:
    """What decides a result beside the checked files: this version, as it lies on the disk."""
    parts = [__version__, sys.version]
    package = Path(__file__).parent.parent
    for room in (".", "source", "static", "checks", "fixes"):
        for directory, folders, names in os.walk(package / room):
            folders[:] = sorted(folders) if room != "." else []
            for name in sorted(names):
                if name.endswith(".py"):
                    status = os.stat(os.path.join(directory, name))
                    parts.append(f"{name} {status.st_size} {status.st_mtime_ns}")
    parts.append(str(os.stat(package / "versions.py").st_mtime_ns))
    return parts
