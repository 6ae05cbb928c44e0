"""Small programs on disk, and the static pass over them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from static_prelude import PRELUDE

from warplint.model import Finding
from warplint.source import discover, find_programs
from warplint.static import StaticResult, analyze


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Write files below a fresh directory and return it."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture
def run(write) -> Callable[..., StaticResult]:
    """The static result of a program given as text (after the prelude) or as files."""

    def run(source: str | Mapping[str, str], *, prelude: bool = True) -> StaticResult:
        if isinstance(source, str):
            body = textwrap.dedent(source)
            source = {"program.py": PRELUDE + body if prelude else body}
        root = write(source)
        found = discover(["."], root=root)
        return analyze(found.files, find_programs(found.files, root), root=root)

    return run


@pytest.fixture
def findings(run) -> Callable[..., list[Finding]]:
    """Like ``run``, but only the findings; the interpreter must not have failed."""

    def findings(source: str | Mapping[str, str], **options: bool) -> list[Finding]:
        result = run(source, **options)
        assert result.internal_errors == ()
        return list(result.findings)

    return findings
