"""Writing reports, and reading the sources that they point into."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warplint.cli.errors import CallError, error_text

if TYPE_CHECKING:
    from warplint.cli.options import Options

_CELL = re.compile(r"(.*\.ipynb):cell (\d+)")


def ensure_open() -> None:
    """Fail before the work is done and not after it: nobody could read the report."""
    if sys.stdout is None:
        raise CallError("cannot write to standard output: it is closed")


def write(text: str) -> None:
    """Print to stdout; a reader that went away (`| head`) is no error."""
    ensure_open()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()
    except OSError as error:
        silence()
        raise CallError(f"cannot write to standard output: {error_text(error)}") from None


def silence() -> None:
    """Let what Python still flushes at exit go nowhere: its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def save(file: Path, text: str) -> None:
    """Write a report to a file; its directory is made where it is missing."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # A name that is not UTF-8 is written as on a terminal, which is also how JSON escapes it.
        file.write_bytes(text.encode("utf-8", "backslashreplace"))
    except (FileExistsError, NotADirectoryError):
        raise CallError(f"cannot write {file}: {file.parent} is not a directory") from None
    except (OSError, ValueError) as error:
        raise CallError(f"cannot write {file}: {error_text(error)}") from None


def read_source(file: str, options: Options) -> str | None:
    """The text as it is on disk: line ends and byte order marks count for fingerprints."""
    if cell := _CELL.fullmatch(file):
        from warplint.source.notebooks import cell_source

        notebook = read_source(cell[1], options)
        return None if notebook is None else cell_source(notebook.encode(), int(cell[2]))
    buffer = options.buffer
    if buffer is not None and file == buffer.display:
        return buffer.bytes_read.decode("utf-8", "replace")
    return read_text(options.root / file)


def read_text(path: Path) -> str | None:
    """The text of a file, or ``None``."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
