"""The static pass: files and programs in, findings out; nothing is executed.

Importing this package costs nothing: libcst and networkx are loaded when a file passes the byte
screen, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplint.model import Finding, Program
from warplint.source.cache import Cache
from warplint.source.discovery import SourceFile
from warplint.versions import Version

__all__ = ["StaticResult", "analyze"]


@dataclass(frozen=True)
class StaticResult:
    """What the static pass found."""

    findings: tuple[Finding, ...] = ()
    alone: tuple[Finding, ...] = ()
    """About kernels that nothing records: only said where made-up arguments prove them."""
    skipped: tuple[str, ...] = ()
    """Calls that could not be followed, for ``--verbose``."""
    internal_errors: tuple[str, ...] = ()
    """Entries at which the interpreter itself failed; each names the file."""


def analyze(
    files: Sequence[SourceFile],
    programs: Sequence[Program],
    *,
    root: Path | str,
    cache: Cache | None = None,
    jobs: int = 1,
    alone: bool = False,
    warp: Callable[[Path], Version | None] = lambda file: None,
) -> StaticResult:
    """Run every check on every tape scope that is reached from ``programs`` and ``files``.

    With ``alone``, kernels in files that no program loads are looked at by themselves, too.
    ``warp`` says which version of Warp a program runs with: what is right in it is not reported.
    Neither ``cache`` nor ``jobs`` changes the result.
    """
    relevant = any(f.screened or (alone and f.has_kernels) for f in files)
    if not relevant and not any(p.reaches_tape for p in programs):
        return StaticResult()
    from warplint.static.outcomes import analyze_files

    return analyze_files(files, programs, Path(root).absolute(), cache or Cache(), jobs, alone, warp)
