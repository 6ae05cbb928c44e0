"""`--baseline`: results that are known and do not fail the run, told by their code and not their line.

An entry is a rule, a file, the text of the line, and how many results look like that. It survives
whatever moves the line; it ends with a change of the line itself.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplint.cli.errors import CallError, error_text
from warplint.model import Result, Verdict
from warplint.source.discovery import display_path
from warplint.source.notebooks import all_cells, is_notebook

SCHEMA = 1
_FAILING = (Verdict.CONFIRMED, Verdict.LATENT, Verdict.UNVERIFIED)
# As Python counts lines: `splitlines` would also split at form feeds and the like.
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, order=True)
class Entry:
    """What results have in common that are taken for the same."""

    file: str
    """From the directory of the baseline."""
    rule: str
    code: str
    """The line, with blanks made one."""


class Fingerprints:
    """Entries of results; ``read_source`` gives the text of a file by its name in a location."""

    def __init__(self, directory: Path, root: Path, read_source: Callable[[str], str | None]) -> None:
        self._directory = directory
        self._root = root
        self._read = read_source
        self._lines: dict[str, list[str]] = {}

    def of(self, result: Result) -> Entry:
        place = result.location
        lines = self.lines(place.source)
        code = lines[place.line - 1] if 0 < place.line <= len(lines) else ""
        file = os.path.relpath(self._root / place.file, self._directory)
        return Entry(Path(file).as_posix(), result.rule, code)

    def lines(self, file: str) -> list[str]:
        """The lines of a file as entries hold them."""
        if file not in self._lines:
            text = self._read(file) or ""
            if is_notebook(file):
                text = all_cells(text.encode())
            self._lines[file] = [" ".join(line.split()) for line in _LINE_END.split(text.lstrip("\ufeff"))]
        return self._lines[file]

    def display(self, entry: Entry) -> str:
        """The file of an entry as locations name it."""
        return display_path(Path(os.path.abspath(self._directory / entry.file)), self._root)

    def still_there(self, entry: Entry) -> bool:
        """Whether the line of an entry is anywhere in its file."""
        return entry.code in self.lines(self.display(entry))


@dataclass(frozen=True)
class Sifted:
    """Results without the known ones, and what became of the baseline."""

    results: list[Result]
    known: int
    unmatched: tuple[Entry, ...]
    """Entries that fewer results look like than were written down."""


def sift(results: Sequence[Result], baseline: Counter[Entry], fingerprints: Fingerprints) -> Sifted:
    """Take the known results away: as many of each kind as the baseline counts, from the top."""
    left = Counter(baseline)
    kept = []
    for result in sorted(results, key=lambda result: result.sort_key):
        if result.verdict in _FAILING:
            entry = fingerprints.of(result)
            if left[entry] > 0:
                left[entry] -= 1
                continue
        kept.append(result)
    unmatched = tuple(sorted(entry for entry, count in left.items() if count > 0))
    return Sifted(kept, len(results) - len(kept), unmatched)


def stale(
    unmatched: Sequence[Entry], fingerprints: Fingerprints, decided: Callable[[Entry], bool], name: str
) -> list[str]:
    """A line about entries that have had their day: their code is gone, or a full run found nothing.

    ``decided`` says of an entry whether this run would have met it.
    """
    gone = [e for e in unmatched if not fingerprints.still_there(e) or decided(e)]
    if not gone:
        return []
    first = gone[0]
    code = f" (`{first.code}`)" if first.code else ""
    others = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return [
        f"{name}: no longer found: {first.rule} in {first.file}{code}{others};"
        f" --write-baseline {name} leaves {'them' if others else 'it'} out"
    ]


def take(results: Sequence[Result], fingerprints: Fingerprints) -> Counter[Entry]:
    """What a baseline of these results holds."""
    return Counter(fingerprints.of(result) for result in results if result.verdict in _FAILING)


def read(file: Path) -> Counter[Entry]:
    """The entries of a baseline file."""
    try:
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise CallError(f"--baseline: cannot read {file}: {error_text(error)}") from None
    try:
        document = json.loads(text)
        schema = document["schema"]
        counts: Counter[Entry] = Counter()
        for item in document["results"] if schema == SCHEMA else ():
            counts[Entry(str(item["file"]), str(item["rule"]), str(item["code"]))] += int(item["count"])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise CallError(f"--baseline: {file} was not written by --write-baseline") from None
    if schema != SCHEMA:
        raise CallError(f"--baseline: {file} has schema {schema}; this version reads {SCHEMA}")
    return counts


def dump(entries: Counter[Entry]) -> str:
    """The text of a baseline file: an entry a line, so that a merge of two has few conflicts."""
    lines = [
        json.dumps(
            {"file": entry.file, "rule": entry.rule, "code": entry.code, "count": count},
            ensure_ascii=False,
        )
        for entry, count in sorted(entries.items())
    ]
    body = ",\n".join(f"    {line}" for line in lines)
    return f'{{\n  "schema": {SCHEMA},\n  "results": [{f"{chr(10)}{body}{chr(10)}  " if lines else ""}]\n}}\n'
