"""Edits of files that were edited before, as edits of the files before that."""

from __future__ import annotations

from collections.abc import Sequence

from warplint.model import Edit, Location

__all__ = ["translate_back"]


def translate_back(edits: Sequence[Edit], stages: Sequence[Sequence[Edit]]) -> tuple[Edit, ...] | None:
    """The same edits before earlier ones were made; None where one lies in what those have written."""
    for made in reversed(stages):
        moved = []
        for edit in edits:
            place = _before(edit.location, made)
            if place is None:
                return None
            moved.append(Edit(place, edit.text))
        edits = moved
    return tuple(edits)


def _before(place: Location, made: Sequence[Edit]) -> Location | None:
    """Where a region lay before edits of its file were made."""
    start = _point((place.line, place.column), place.file, made)
    end = _point((place.end_line, place.end_column), place.file, made)
    if start is None or end is None:
        return None
    return Location(place.file, *start, *end)


def _point(point: tuple[int, int], file: str, made: Sequence[Edit]) -> tuple[int, int] | None:
    """A point of the edited text in the text before; edits are gone through from the top."""
    lines = 0
    columns: tuple[int, int] = (0, 0)  # the line in the edited text, and by how much it was moved
    for edit in sorted((e for e in made if e.location.file == file), key=lambda e: e.location):
        region = edit.location
        shift = columns[1] if columns[0] == region.line + lines else 0
        start = (region.line + lines, region.column + shift)
        rows = edit.text.count("\n")
        tail = len(edit.text) - edit.text.rfind("\n") - 1 if rows else len(edit.text)
        end = (start[0] + rows, (1 if rows else start[1]) + tail)
        if point < end and point > start:
            return None
        if point <= start and (point < start or start != end):
            break
        lines += rows - (region.end_line - region.line)
        columns = (end[0], end[1] - region.end_column)
    line, column = point
    return (line - lines, column - (columns[1] if columns[0] == line else 0))
