"""Writing fixed files: whole or not at all, and only over what was read."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

__all__ = ["NotWrittenError", "difference", "write_over"]


class NotWrittenError(Exception):
    """A file was left as it is; the message says why."""


def write_over(contents: Mapping[Path, tuple[bytes, bytes]]) -> None:
    """Give files new contents, each in one step, if all of them still hold what they did.

    A link stays a link: what it points to is written. The mode of a file is kept. Nothing is put in
    place before everything is on the disk, so that fixes of several files come together or not at all.
    """
    prepared: list[tuple[str, Path]] = []
    try:
        for file, (was, now) in contents.items():
            prepared.append(_prepare(file, was, now))
        while prepared:
            temporary, target = prepared[-1]
            os.replace(temporary, target)
            prepared.pop()
    except OSError as error:
        raise NotWrittenError((error.strerror or str(error)).lower()) from None
    finally:
        for temporary, _ in prepared:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _prepare(file: Path, was: bytes, now: bytes) -> tuple[str, Path]:
    """The new contents in a file of their own, beside the one they are for."""
    target = Path(os.path.realpath(file))
    status = target.stat()
    if not os.access(target, os.W_OK):
        raise NotWrittenError(f"{file} is write-protected")
    if target.read_bytes() != was:
        raise NotWrittenError(f"{file} has changed while it was checked")
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(now)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
    except BaseException:
        os.unlink(temporary)
        raise
    return temporary, target


def difference(was: Mapping[str, bytes], now: Mapping[str, bytes]) -> str:
    """What would be changed, as a unified diff that ``patch`` and ``git apply`` take."""
    parts: list[str] = []
    for file in sorted(now):
        before, after = _lines(was[file]), _lines(now[file])
        for line in unified_diff(before, after, f"a/{file}", f"b/{file}"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def _lines(data: bytes) -> list[str]:
    """Lines as ``diff`` sees them: they end with a line feed and with nothing else."""
    return re.findall(r"[^\n]*\n|[^\n]+", data.decode("utf-8", "surrogateescape"))
