"""`warplint verify`, run in this process on a program of its own directory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from warplint.cli.main import main

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Verified:
    """One program's report, as text and as JSON."""

    status: int
    text: str
    record: dict[str, Any]

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]

    @property
    def story(self) -> dict[str, Any]:
        return dict(self.record["verification"])

    @property
    def said(self) -> str:
        """The text without its line breaks."""
        return " ".join(self.text.split())

    def rules(self, verdict: str) -> set[str]:
        return {result["rule"] for result in self.record["results"] if result["verdict"] == verdict}


def call(directory: Path, *words: str) -> tuple[int, str]:
    """The status and the standard output of a command line in a directory."""
    before, out = Path.cwd(), io.StringIO()
    os.chdir(directory)
    try:
        with contextlib.redirect_stdout(out):
            return main(list(words)), out.getvalue()
    finally:
        os.chdir(before)


@pytest.fixture(scope="session")
def swing(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Verified]:
    """Verify `swing.py` with options of its own, after those of the command: measured once."""
    directory = tmp_path_factory.mktemp("verify")
    shutil.copy(PROGRAMS / "swing.py", directory)

    def run(*arguments: str, options: tuple[str, ...] = ()) -> Verified:
        words = ("swing.py", *arguments)
        status, text = call(directory, "verify", "--explain", *options, *words)
        # Nothing has changed since: this one is told from the cache.
        again, record = call(directory, "verify", "--format", "json", *options, *words)
        assert status == again
        return Verified(status, text, json.loads(record))

    return run
