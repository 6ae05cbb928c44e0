"""Code excerpts: the lines of a finding, with each site marked under its line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from warplint.model import Location, Result
from warplint.report.context import in_order
from warplint.report.lines import plain

Paint = Callable[[str, str], str]
"""``paint(style, text)``: colour ``text``, or leave it where colour is off."""

_TAB = 4
# As Python counts lines: `splitlines` would also split at form feeds and the like.
_LINE_END = re.compile(r"\r\n|\r|\n")
_SURROUNDING = 1


@dataclass(frozen=True)
class _Mark:
    place: Location
    label: str
    primary: bool


def excerpt(result: Result, read: Callable[[str], str | None], paint: Paint, width: int) -> list[str]:
    """The lines to print for ``result``: its own file first, then the other files."""
    before, after = in_order(result)
    marks = [_Mark(site.location, plain(site.message), False) for site in before]
    marks.append(_Mark(result.location, "", True))
    marks += [_Mark(site.location, plain(site.message), False) for site in after]
    files = sorted(
        {mark.place.source for mark in marks}, key=lambda file: (file != result.location.source, file)
    )
    gutter = len(str(max(mark.place.line for mark in marks) + _SURROUNDING))
    lines: list[str] = []
    if len(marks) == 1 and read(result.location.source) is None:
        return lines  # the heading has said it all
    for position, file in enumerate(files):
        text = read(file)
        here = [mark for mark in marks if mark.place.source == file]
        arrow = "-->" if position == 0 else ":::"
        if text is None:
            lines += [paint("frame", f"{' ' * gutter} {arrow} ") + _where(mark) for mark in here]
            continue
        lines.append(paint("frame", f"{' ' * gutter} {arrow} ") + plain(file))
        lines += _file(here, _LINE_END.split(text), gutter, paint, width)
    return lines


def _where(mark: _Mark) -> str:
    place = f"{mark.place.source}:{mark.place.line}"
    return plain(f"{place}: {mark.label}" if mark.label else place)


def _file(marks: list[_Mark], source: list[str], gutter: int, paint: Paint, width: int) -> list[str]:
    shown: set[int] = set()
    for mark in marks:
        around = _SURROUNDING if mark.primary else 0
        shown.update(range(mark.place.line - around, mark.place.line + around + 1))
    numbers = sorted(number for number in shown if 1 <= number <= len(source))
    # A blank line, or one that only closes a call, says nothing as a neighbour.
    own = {mark.place.line for mark in marks}
    numbers = [number for number in numbers if number in own or any(map(str.isalnum, source[number - 1]))]
    lines = [paint("frame", f"{' ' * gutter} |")]
    previous = 0
    for number in numbers:
        if previous and number > previous + 1:
            lines.append(paint("frame", "..."))
        previous = number
        code = source[number - 1]
        room = max(20, width - gutter - 3)
        lines.append(paint("frame", f"{number:>{gutter}} | ") + _clip(code.expandtabs(_TAB), room))
        for mark in sorted(
            (mark for mark in marks if mark.place.line == number), key=lambda mark: not mark.primary
        ):
            lines.append(paint("frame", f"{' ' * gutter} | ") + _underline(mark, code, room, paint))
    return lines


def _underline(mark: _Mark, code: str, room: int, paint: Paint) -> str:
    start = min(max(mark.place.column - 1, 0), len(code))
    one_line = mark.place.end_line == mark.place.line and mark.place.end_column > mark.place.column
    end = min(mark.place.end_column - 1, len(code)) if one_line else len(code.rstrip())
    if mark.place.column <= 1 and not one_line:
        start = len(code) - len(code.lstrip())
    # Measured on the expanded text, so that marks stay below their code.
    left = len(code[:start].expandtabs(_TAB))
    right = max(left + 1, len(code[:end].expandtabs(_TAB)))
    left, right = min(left, room - 1), min(right, room)
    sign = "^" if mark.primary else "-"
    text = sign * max(1, right - left)
    if mark.label:
        # Long underlines would push their label out of sight.
        if len(text) + 1 + len(mark.label) + left > room:
            text = text[: max(1, room - left - len(mark.label) - 1)]
        text += f" {mark.label}"
    return " " * left + paint("primary" if mark.primary else "secondary", text)


def _clip(code: str, room: int) -> str:
    code = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in code.rstrip())
    return code if len(code) <= room else code[: room - 1] + "…"
