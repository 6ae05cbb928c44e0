"""Facts of many files at a time: known from an earlier run, or worked out by several processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from warplint.source.cache import Cache
from warplint.source.discovery import SourceFile
from warplint.source.facts import FileFacts, paused_collector
from warplint.source.workers import run_all

__all__ = ["prepare", "recall", "remember"]

_WORTH_A_PROCESS = 300_000
"""Bytes of source below which starting processes takes longer than reading it here."""


def prepare(files: Sequence[SourceFile], cache: Cache, jobs: int) -> None:
    """Find out the facts of the files that mention Warp."""
    for file in files:
        recall(file, cache)
    wanted = [f for f in files if "facts" not in f.__dict__ and b"warp" in f.data and f.decodes]
    if sum(len(f.data) for f in wanted) < _WORTH_A_PROCESS:
        jobs = 1
    # Large files first: the last ones to finish should be short.
    wanted.sort(key=lambda f: (-len(f.data), f.display))
    with paused_collector():
        for file, facts in zip(
            wanted, run_all(lambda k: FileFacts.of(wanted[k].text), len(wanted), jobs), strict=True
        ):
            file.__dict__["facts"] = facts


def recall(file: SourceFile, cache: Cache) -> None:
    """Give a file the facts that an earlier run has stored."""
    if "facts" in file.__dict__ or cache.file is None:
        return
    known = cache.get("facts", file.digest)
    if known is not None:
        try:
            file.__dict__["facts"] = FileFacts.from_plain(known)
        except (TypeError, ValueError):
            return


def remember(files: Iterable[SourceFile], cache: Cache) -> None:
    """Store the facts that this run has found out."""
    for file in files:
        facts = file.__dict__.get("facts")
        if facts is not None and cache.get("facts", file.digest) is None:
            cache.put("facts", file.digest, facts.to_plain())
