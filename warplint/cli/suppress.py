"""Suppression comments: what they hide, and which of them hid nothing (WL001)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from warplint.cli.selection import Selection
from warplint.model import Location, Result, Rule, Verdict

_REMOVE = "remove the comment, or the rule from its list"
_HOW = "`# warplint: ignore[WL101, WL103]` hides these rules, `# warplint: ignore` all of them"


def apply_suppressions(
    results: list[Result],
    files: Sequence[Any],
    rules: Mapping[str, Rule],
    selection: Selection,
    *,
    probed: bool,
) -> list[Result]:
    """Drop suppressed results; add WL001 for comments that suppressed nothing.

    A dismissed finding keeps its comment in use: the same comment is needed where the probe
    does not run. ``probed`` says that every program was measured, so that a comment on a
    measured rule can be called unused. A comment that cannot be understood hides nothing.
    """
    from warplint.source.suppressions import suppressions

    comments = {file.display: suppressions(file.text) for file in files if b"warplint:" in file.data}
    comments = {name: found for name, found in comments.items() if found.items or found.mistakes}
    kept = []
    for result in results:
        found = comments.get(result.location.file)
        lines = (result.location.line, result.location.end_line)
        if found is None or not found.covers(result.rule, result.name, lines):
            kept.append(result)
    for name, found in comments.items():
        if not selection.shows("WL001", name):
            continue
        for mistake in found.mistakes:
            if not _excused(mistake, found.items):
                place = Location(name, mistake.line, mistake.column)
                kept.append(_useless(f"this comment suppresses nothing: {mistake.problem}", place, _HOW))
        for comment in found.items:
            if _excused(comment, found.items):
                continue
            place = Location(name, comment.line, comment.column)
            for message in _complaints(comment, found, rules, selection, name, probed):
                kept.append(_useless(message, place, _REMOVE))
    return kept


def _excused(comment: Any, comments: Sequence[Any]) -> bool:
    """Whether WL001 itself is suppressed here; only by name, as a bare comment would excuse itself."""
    for other in comments:
        covers = other.whole_file or other.first_line <= comment.line <= other.last_line
        if other.rules and covers and other.names("WL001", "unused-suppression"):
            return True
    return False


def _complaints(
    comment: Any, found: Any, rules: Mapping[str, Rule], selection: Selection, file: str, probed: bool
) -> list[str]:
    """What the comment is good for no more; nothing of rules that this run did not decide.

    A line for each rule, the same whatever became of the others: shards see different ones.
    """
    useless = comment in found.unused()
    if not comment.rules:
        decided = probed and all(selection.shows(rule, file) for rule in rules)
        return ["this comment suppresses nothing"] if useless and decided else []
    unknown = [word for word in comment.rules if not _known(word, rules)]
    lines = [f"this comment names an unknown rule: {word}{_hint(word, rules)}" for word in unknown]
    if not (useless or probed):
        return lines  # a rule that has done nothing here may be for what is measured
    for word in found.unused_words(comment):
        if word not in unknown and _decided(word, rules, selection, file, probed):
            what = "suppresses nothing" if len(comment.rules) == 1 else f"need not name {word}"
            lines.append(f"this comment {what}: no {word} here")
    return lines


def _decided(word: str, rules: Mapping[str, Rule], selection: Selection, file: str, probed: bool) -> bool:
    """Whether this run would have reported all that a word of a comment means."""
    from warplint.source.suppressions import named

    meant = [rule for rule in rules.values() if named(word, rule.id, rule.name)]
    # Whole-program results exist only where programs were measured.
    return all(selection.shows(rule.id, file) and (probed or not rule.id.startswith("WL9")) for rule in meant)


def _hint(word: str, rules: Mapping[str, Rule]) -> str:
    names = [*rules, *(rule.name for rule in rules.values())]
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else ""


def _known(word: str, rules: Mapping[str, Rule]) -> bool:
    upper = word.upper()
    return any(
        word.lower() == rule.name or (upper.startswith("WL") and rule.id.startswith(upper))
        for rule in rules.values()
    )


def _useless(message: str, place: Location, help: str) -> Result:
    return Result(
        rule="WL001",
        name="unused-suppression",
        verdict=Verdict.NOTE,
        message=message,
        location=place,
        help=help,
    )
