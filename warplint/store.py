"""Files in the user's cache directory: written whole or not at all, never trusted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def user_directory(name: str) -> Path | None:
    """A directory of warplint's own in the user's cache, or below ``WARPLINT_CACHE_DIR``."""
    named = os.environ.get("WARPLINT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = named or os.path.join(base, "warplint")
    return Path(directory) / name if os.path.isabs(directory) else None


def read(file: Path) -> Any:
    """The content of an entry; None if there is none or it is damaged."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def write(file: Path, value: Any) -> bool:
    """Writes an entry as JSON; whether it could be written."""
    return write_text(file, json.dumps(value, separators=(",", ":")))


def write_text(file: Path, text: str) -> bool:
    """Writes a file; a cache that cannot be written is no reason to complain."""
    temporary = ""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=file.parent, suffix=".new")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, file)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def digest_of_names(directory: str, wanted: Callable[[str], bool]) -> str:
    """A digest of the names in a directory; ``absent`` if it cannot be listed."""
    try:
        names = sorted(name for name in os.listdir(directory) if wanted(name))
    except OSError:
        return "absent"
    return hashlib.blake2b("\0".join(names).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def digest_of_packages(directory: str) -> str:
    """A digest of the names and versions of what is installed in a directory of packages."""
    return digest_of_names(
        directory, lambda name: name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link"))
    )
