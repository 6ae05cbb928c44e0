"""What a report needs beside the records: rules' texts, source text, and how to write."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from warplint.model import Check, Location, Related, Result, Rule, Verdict


def _no_source(file: str) -> str | None:
    return None


def _as_it_is(place: Location) -> Location:
    return place


@dataclass(frozen=True)
class Context:
    """Everything outside the records that a report may depend on."""

    version: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    read_source: Callable[[str], str | None] = _no_source
    """Text of a file by the name that locations use, or ``None``."""
    in_file: Callable[[Location], Location] = _as_it_is
    """The place in the file of a place in a cell, for readers that know no cells."""
    start: str = ""
    """The directory that relative paths are relative to; absolute, POSIX."""
    repository: str = ""
    """The repository's root, for readers that want paths from there; absolute, POSIX."""
    timings: bool = False
    quiet: bool = False
    verbose: bool = False
    statistics: bool = False
    explain: bool = False
    """Whether a verified program's report tells how everything was found."""
    color: bool = False
    width: int = 100
    checked_files: int = 0
    probed: bool = True
    known: int = 0
    """Results that a baseline took away."""
    fingerprints: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Line hashes by file and line that are known without the source."""

    def from_repository(self, file: str) -> str:
        """``file`` relative to the repository's root where it lies below it."""
        path = PurePosixPath(self.start, file)
        try:
            return path.relative_to(self.repository).as_posix() if self.repository else file
        except ValueError:
            return file


_STORY = (r"\ballocated\b|\bmade\b|\bborn\b", r"\bread\b")
"""What comes before the site of a finding: the array is born, and its value is read."""


def in_order(result: Result) -> tuple[list[Related], list[Related]]:
    """Split the other sites of a result into what happens before its own and after it.

    A value is read before it is overwritten, an array is born before its adjoint is lost,
    and backward comes last in every story.
    """

    def rank(site: Related) -> int:
        if "backward pass runs" in site.message or "backward runs" in site.message:
            return len(_STORY) + 1
        found = [number for number, words in enumerate(_STORY) if re.search(words, site.message)]
        return found[0] if found else len(_STORY)

    # A cut path begins with the allocation, which is the finding's own site.
    last_before = -1 if result.rule.startswith("WL2") else len(_STORY) - 1
    sites = sorted(result.related, key=rank)
    before = [site for site in sites if rank(site) <= last_before]
    return before, sites[len(before) :]


def headline(result: Result) -> Check | None:
    """The comparison that says most: the largest difference that was established."""
    checks = result.evidence.checks if result.evidence else ()
    differing = [check for check in checks if check.outcome == "differs"]
    if not differing:
        return None
    # Not-a-number is the largest difference there is.
    return max(
        differing, key=lambda check: (check.relative_error != check.relative_error, check.relative_error)
    )


def fails_as_error(result: Result) -> bool:
    """Whether a report shows the result as an error: a wrong gradient, or a file not read."""
    return result.verdict is Verdict.CONFIRMED or result.rule == "WL002"


def says_more(result: Result) -> bool:
    """Whether the reason says what the message does not; of a file not read it says less."""
    if not result.reason or result.rule == "WL002":
        return False
    # `fd-inconclusive: …` and the like: the words of a program, for a program.
    words = re.sub(r"^[a-z]+(-[a-z]+)*: ", "", result.reason)
    return words not in result.message


def by_cell(place: Location, text: str) -> str:
    """A text that says the cell, for readers that know no cells."""
    return f"cell {place.cell}, line {place.line}: {text}" if place.cell else text
