"""Writing to standard output."""

from __future__ import annotations

import os
import sys

from warplint.cli.errors import CallError, error_text


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
