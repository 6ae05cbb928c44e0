"""``# warplint: ignore[...]`` comments: where they apply and which of them did nothing."""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
import warnings
from dataclasses import dataclass, field

__all__ = ["Mistake", "Suppression", "Suppressions", "suppressions"]

_COMMENT = re.compile(r"#\s*warplint:\s*(?P<directive>[\w-]+)(?P<rest>[^#]*)", re.IGNORECASE)
_LIST = re.compile(r"\s*\[(?P<rules>[^\[\]]*)\]")
_REASON = re.compile(r"\s*($|--|-\s|:\s+(?!WL\d)|\((?!WL\d))", re.IGNORECASE)
"""What may follow a comment that names no rules: nothing, or a reason that cannot be taken for one."""
_DIRECTIVES = ("ignore", "ignore-file")
_OTHER_TOOLS = ("disable", "noqa", "nolint", "off", "skip", "suppress")


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
        return not self.rules or any(named(word, rule_id, rule_name) for word in self.rules)


def named(word: str, rule_id: str, rule_name: str) -> bool:
    """Whether a word of a comment means a rule."""
    return word.lower() == rule_name.lower() or (
        word.upper().startswith("WL") and rule_id.startswith(word.upper())
    )


@dataclass(frozen=True)
class Mistake:
    """A comment that was meant to suppress something and cannot be understood; it suppresses nothing."""

    line: int
    column: int
    problem: str


@dataclass
class Suppressions:
    """The comments of one file. ``covers`` remembers which of them, and which words, were used."""

    items: tuple[Suppression, ...] = ()
    mistakes: tuple[Mistake, ...] = ()
    _used: set[tuple[Suppression, str]] = field(default_factory=set)

    def covers(self, rule_id: str, rule_name: str, line_range: tuple[int, int]) -> bool:
        """Whether a result of a rule at these lines (first, last) is suppressed."""
        first, last = line_range
        hit = False
        for item in self.items:
            inside = item.whole_file or (item.first_line <= last and first <= item.last_line)
            for word in item.rules or ("",):
                if inside and (not word or named(word, rule_id, rule_name)):
                    self._used.add((item, word))
                    hit = True
        return hit

    def unused(self) -> tuple[Suppression, ...]:
        """The comments that suppressed nothing so far, in the order of the file."""
        used = {item for item, _ in self._used}
        return tuple(item for item in self.items if item not in used)

    def unused_words(self, item: Suppression) -> tuple[str, ...]:
        """What a comment names and did not suppress."""
        return tuple(word for word in item.rules if (item, word) not in self._used)


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
    mistakes = []
    for line, column, comment in comments:
        match = _COMMENT.search(comment)
        if match is None:
            continue
        directive, rest = match["directive"].lower(), match["rest"]
        problem, rules = _read(directive, rest)
        if problem is not None:
            mistakes.append(Mistake(line, column, problem))
        if rules is None:
            continue
        own_line = not lines[line - 1][: column - 1].strip()
        # A comment alone on its line speaks of the statement below it.
        target = _next_code_line(lines, line) if own_line else line
        first, last = statements.get(target, (target, target))
        whole_file = directive == "ignore-file"
        items.append(Suppression(line, column, rules, whole_file, min(first, line), max(last, line)))
    return Suppressions(tuple(items), tuple(mistakes))


def _read(directive: str, rest: str) -> tuple[str | None, tuple[str, ...] | None]:
    """What is wrong with a comment, and the rules that it names (none: all of them)."""
    if directive not in _DIRECTIVES:
        near = difflib.get_close_matches(directive, _DIRECTIVES, n=1, cutoff=0.7)
        if not near and directive not in _OTHER_TOOLS and not directive.startswith("ignore"):
            return None, None  # prose that begins like this
        return f"there is no `{directive}`; did you mean `{near[0] if near else 'ignore'}`?", None
    listed = _LIST.match(rest)
    if listed:
        rules = tuple(re.split(r"[,\s]+", listed["rules"].strip(" ,\t")))
        if rules == ("",):
            return f"`{directive}[]` names no rule", None
        return None, rules
    if rest.lstrip().startswith("["):
        return "its `[` has no `]`", None
    if _REASON.match(rest):
        return None, ()
    word = re.match(r"[\s=:,(]*(WL\d+|[a-z]+(?:-[a-z]+)+)\b", rest, re.IGNORECASE)
    if word:
        return f"rules are named in brackets: `{directive}[{word[1]}]`", None
    return f"after a bare `{directive}`, a reason begins with `--` or `#`", None


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
