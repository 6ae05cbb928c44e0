"""``# warplint: ignore[...]`` comments: where they apply and which of them did nothing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field

__all__ = ["Suppression", "Suppressions", "suppressions"]

_COMMENT = re.compile(
    r"#\s*warplint:\s*(?P<kind>ignore-file|ignore)\b\s*(?:\[(?P<rules>[^\]]*)\])?", re.IGNORECASE
)


@dataclass(frozen=True)
class Suppression:
    """One comment. ``rules`` is empty when it names none and therefore means all of them."""

    line: int
    column: int
    rules: tuple[str, ...]
    whole_file: bool
    first_line: int
    """First and last line of what it covers."""
    last_line: int

    def names(self, rule_id: str, rule_name: str) -> bool:
        """Whether the comment speaks of a rule: by id, by id prefix, by name, or of all."""
        if not self.rules:
            return True
        return any(
            r.lower() == rule_name.lower() or (r.upper().startswith("WL") and rule_id.startswith(r.upper()))
            for r in self.rules
        )


@dataclass
class Suppressions:
    """The comments of one file. ``covers`` remembers which of them were used."""

    items: tuple[Suppression, ...] = ()
    _used: set[Suppression] = field(default_factory=set)

    def covers(self, rule_id: str, rule_name: str, line_range: tuple[int, int]) -> bool:
        """Whether a result of a rule at these lines (first, last) is suppressed."""
        first, last = line_range
        hit = False
        for item in self.items:
            inside = item.whole_file or (item.first_line <= last and first <= item.last_line)
            if inside and item.names(rule_id, rule_name):
                self._used.add(item)
                hit = True
        return hit

    def unused(self) -> tuple[Suppression, ...]:
        """The comments that suppressed nothing so far, in the order of the file."""
        return tuple(item for item in self.items if item not in self._used)


def suppressions(text: str) -> Suppressions:
    """Read the suppression comments of a file; a text that does not tokenize has none beyond."""
    if "warplint:" not in text:
        return Suppressions()
    comments: list[tuple[int, int, str]] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                comments.append((token.start[0], token.start[1] + 1, token.string))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass
    statements = _statement_ranges(text)
    lines = text.splitlines()
    items = []
    for line, column, comment in comments:
        match = _COMMENT.search(comment)
        if match is None:
            continue
        named = match.group("rules")
        rules = tuple(r.strip() for r in (named or "").split(",") if r.strip())
        if named is not None and not rules:
            continue  # ``ignore[]`` names nothing and suppresses nothing
        whole_file = match.group("kind").lower() == "ignore-file"
        own_line = not lines[line - 1][: column - 1].strip()
        # A comment alone on its line speaks of the statement below it.
        target = _next_code_line(lines, line) if own_line else line
        first, last = statements.get(target, (target, target))
        items.append(Suppression(line, column, rules, whole_file, min(first, line), max(last, line)))
    return Suppressions(tuple(items))


def _next_code_line(lines: list[str], line: int) -> int:
    for number in range(line + 1, len(lines) + 1):
        stripped = lines[number - 1].strip()
        if stripped and not stripped.startswith("#"):
            return number
    return line


def _statement_ranges(text: str) -> dict[int, tuple[int, int]]:
    """First line of each statement to its line range; compound statements count with their header."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    ranges: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        last = node.end_lineno or node.lineno
        body = getattr(node, "body", None)
        if isinstance(body, list) and body:
            last = max(node.lineno, body[0].lineno - 1)
        first, known = ranges.get(node.lineno, (node.lineno, node.lineno))
        ranges[node.lineno] = (first, max(known, last))
    return ranges
