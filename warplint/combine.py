"""One list of results out of several: of the programs of a run, or of the shards of one.

A finding is decided by every program that holds it, and the heaviest verdict wins. That a program
was elsewhere, in another process or on another machine, must not show.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from warplint.model import Result, Verdict


def combine(results: Iterable[Result]) -> tuple[Result, ...]:
    """Each result once, with the verdict of the program that says most, in order."""
    chosen: dict[tuple[Any, ...], Result] = {}
    for result in results:
        key = _key(result)
        known = chosen.get(key)
        if (
            known is None
            or _rank(result) > _rank(known)
            or (_rank(result) == _rank(known) and (result.program or "") < (known.program or ""))
        ):
            chosen[key] = result
    return tuple(sorted(chosen.values(), key=lambda result: result.sort_key))


def _key(result: Result) -> tuple[Any, ...]:
    whole_program = result.rule.startswith("WL9") and result.verdict is Verdict.NOTE
    return (
        result.rule,
        result.location,
        result.message,
        result.related,
        # What is said of a whole program is said of each.
        result.program if whole_program else None,
    )


def _rank(result: Result) -> tuple[bool, int]:
    """A finding that no program was asked about says less than any verdict."""
    return (result.program is not None, result.verdict.weight)
