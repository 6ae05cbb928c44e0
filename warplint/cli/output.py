"""Writing to standard output."""

from __future__ import annotations

import os
import sys


def write(text: str) -> None:
    """Print to stdout; a reader that went away (`| head`) is no error."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence()


def silence() -> None:
    """Let what Python still flushes at exit go nowhere: its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
