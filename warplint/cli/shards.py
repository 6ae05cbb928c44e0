"""`--shard 2/3`: a part of the programs, and what `warplint merge` needs to know of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from warplint.cli.errors import CallError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """One of ``count`` equal calls, numbered from 1."""

    index: int
    count: int

    def share(self, items: Sequence[Item]) -> list[Item]:
        """Every ``count``-th of the items, which all shards must see in the same order."""
        return list(items[self.index - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """``2/3``: the second of three."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not found:
        raise CallError(f"--shard: '{text}' is not of the form INDEX/COUNT, for example 1/4")
    index, count = int(found[1]), int(found[2])
    if not 1 <= index <= count:
        raise CallError(f"--shard: there is no shard {index} of {count}; they are numbered from 1")
    return Shard(index, count)


@dataclass(frozen=True)
class ShardRecord:
    """What a shard's report says of itself, under ``shard``; all but ``index`` is the same in all."""

    index: int
    count: int
    directory: str
    """Where the call was made, from the root of the repository."""
    files: int
    probed: bool
    strict: bool
    exit_zero: bool
    static_fail_on: str
    show_dismissed: bool
    undecided: bool = False
    """Whether a program of this shard was blocked or came to no verdict."""

    def same_call(self, other: ShardRecord) -> bool:
        """Whether two shards are of one run."""
        return self._call == other._call

    @property
    def _call(self) -> tuple[Any, ...]:
        return (
            self.count,
            self.directory,
            self.files,
            self.probed,
            self.strict,
            self.exit_zero,
            self.static_fail_on,
            self.show_dismissed,
        )
