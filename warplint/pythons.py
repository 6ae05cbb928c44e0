"""Which Pythons may be a project's own, the surest first."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

OWN = "warplint's own Python"


def candidates(program: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Interpreters for a program of the project at ``root``, each with where it was found."""
    if os.environ.get("VIRTUAL_ENV"):
        yield _python_of(Path(os.environ["VIRTUAL_ENV"])), "VIRTUAL_ENV"
    for directory in directories(program, root):
        for name in (".venv", "venv"):
            if (directory / name / "pyvenv.cfg").is_file():
                yield _python_of(directory / name), f"{name} of the project"
    if os.environ.get("CONDA_PREFIX"):
        yield _python_of(Path(os.environ["CONDA_PREFIX"])), "CONDA_PREFIX"
    yield os.path.abspath(sys.executable), OWN


def directories(program: Path, root: Path) -> Iterator[Path]:
    """The directories around a program, from its own up to ``root``."""
    directory, root = program.resolve().parent, root.resolve()
    while True:
        yield directory
        if directory == root or not directory.is_relative_to(root):
            return
        directory = directory.parent


def _python_of(prefix: Path) -> str:
    return os.path.abspath(prefix / "bin" / "python")
