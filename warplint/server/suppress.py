"""Where a suppression comment goes in a text, as an edit: a line, a column to put it at, the words."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import replace

from warplint.model import Edit, Location

_COMMENT = re.compile(r"#\s*warplint:\s*ignore\s*\[(?P<rules>[^\]]*)\]", re.IGNORECASE)
_FILE_COMMENT = re.compile(r"#\s*warplint:\s*ignore-file\s*\[(?P<rules>[^\]]*)\]", re.IGNORECASE)
_HEAD = re.compile(r"#!|#.*?coding[:=]|%%")
"""What has to stay the first line."""


def suppress_here(lines: list[str], place: Location, rule: str) -> Edit:
    """Hide ``rule`` at a place: in a comment that is there, at the line's end, or above it."""
    line = place.line
    for number in (line, line - 1):
        if not 0 < number <= len(lines):
            continue
        known = _COMMENT.search(lines[number - 1])
        own_line = lines[number - 1].lstrip().startswith("#")
        if known and (number == line or own_line):
            return _added(place, number, known, rule)
    text = lines[line - 1]
    if _takes_a_comment(lines, line):
        return _insert(place, line, len(text.rstrip()) + 1, f"  # warplint: ignore[{rule}]", len(text) + 1)
    indent = text[: len(text) - len(text.lstrip())]
    return _insert(place, line, 1, f"{indent}# warplint: ignore[{rule}]\n")


def suppress_in_file(lines: list[str], place: Location, rule: str) -> Edit:
    """Hide ``rule`` in the whole file: in a comment that is there, or at the top."""
    for number, text in enumerate(lines, 1):
        if known := _FILE_COMMENT.search(text):
            return _added(place, number, known, rule)
    first = 1
    while first <= 2 and first <= len(lines) and _HEAD.match(lines[first - 1]):
        first += 1
    return _insert(place, first, 1, f"# warplint: ignore-file[{rule}]\n")


def _added(place: Location, line: int, comment: re.Match[str], rule: str) -> Edit:
    column = comment.end("rules") + 1
    return _insert(place, line, column, f", {rule}" if comment["rules"].strip() else rule)


def _insert(place: Location, line: int, column: int, text: str, end: int | None = None) -> Edit:
    return Edit(replace(place, line=line, column=column, end_line=line, end_column=end or column), text)


def _takes_a_comment(lines: list[str], line: int) -> bool:
    """Whether the end of a line is code: not the middle of a string, and not continued."""
    if lines[line - 1].rstrip().endswith("\\"):
        return False
    try:
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines) + "\n").readline):
            inside = token.start[0] <= line < token.end[0]
            if inside and token.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER):
                return False
            if token.start[0] > line:
                return True
    except (tokenize.TokenError, SyntaxError):
        return "'''" not in lines[line - 1] and '"""' not in lines[line - 1]
    return True
