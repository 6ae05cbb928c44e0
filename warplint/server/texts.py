"""Places in a text: warplint counts characters from 1, an editor counts code units from 0."""

from __future__ import annotations

import re

from lsprotocol import types

from warplint.model import Location

_LINE_END = re.compile(r"\r\n|\r|\n")


class Text:
    """The text of a file in an editor that counts in ``encoding``."""

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self.lines = _LINE_END.split(text.removeprefix("\ufeff"))
        self.encoding = encoding

    def position(self, line: int, column: int) -> types.Position:
        """The editor's position of a line and column; beyond the end it is the end."""
        if line > len(self.lines):
            return types.Position(len(self.lines) - 1, self._units(self.lines[-1]))
        return types.Position(line - 1, self._units(self.lines[line - 1][: max(0, column - 1)]))

    def end_of_line(self, line: int) -> types.Position:
        return self.position(line, len(self.line(line)) + 1)

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def range(self, location: Location) -> types.Range:
        """The editor's range of a region; one without an end goes to the end of its line."""
        start = self.position(location.line, location.column)
        if not location.end_column:
            return types.Range(start, self.end_of_line(location.line))
        end = self.position(location.end_line, location.end_column)
        return types.Range(start, max(start, end, key=lambda p: (p.line, p.character)))

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


def touches(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges have a point in common."""

    def first(p: types.Position) -> tuple[int, int]:
        return p.line, p.character

    return first(one.start) <= first(other.end) and first(other.start) <= first(one.end)
