"""Suppression comments: what they hide, and which of them hid nothing (WL001)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from warplint.cli.selection import Selection
from warplint.model import Location, Result, Rule, Verdict


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
    measured rule can be called unused.
    """
    from warplint.source.suppressions import suppressions

    comments = {
        file.display: suppressions(file.text)
        for file in files
        if b"warplint:" in file.data and b"warp" in file.data
    }
    comments = {name: found for name, found in comments.items() if found.items}
    kept = []
    for result in results:
        found = comments.get(result.location.file)
        lines = (result.location.line, result.location.end_line)
        if found is None or not found.covers(result.rule, result.name, lines):
            kept.append(result)
    for name, found in comments.items():
        if not selection.shows("WL001", name):
            continue
        for comment in found.unused():
            message = _complaint(comment, rules, selection, name, probed)
            if message and not _excused(comment, found.items):
                kept.append(_unused(message, Location(name, comment.line, comment.column)))
    return kept


def _excused(comment: Any, comments: Sequence[Any]) -> bool:
    """Whether WL001 itself is suppressed here; only by name, as a bare comment would excuse itself."""
    for other in comments:
        covers = other.whole_file or other.first_line <= comment.line <= other.last_line
        if other.rules and covers and other.names("WL001", "unused-suppression"):
            return True
    return False


def _complaint(
    comment: Any, rules: Mapping[str, Rule], selection: Selection, file: str, probed: bool
) -> str | None:
    """Why the comment is worth a line, or nothing if its rules were not decided in this run."""
    if not comment.rules:
        decided = probed and all(selection.shows(rule, file) for rule in rules)
        return "this comment suppresses nothing" if decided else None
    unknown = [word for word in comment.rules if not _known(word, rules)]
    if unknown:
        return f"this comment names an unknown rule: {unknown[0]}"
    meant = [rule for rule in rules.values() if comment.names(rule.id, rule.name)]
    for rule in meant:
        if not selection.shows(rule.id, file):
            return None
        # Whole-program results exist only where programs were measured.
        if rule.id.startswith("WL9") and not probed:
            return None
    return f"this comment suppresses nothing: no {', '.join(comment.rules)} here"


def _known(word: str, rules: Mapping[str, Rule]) -> bool:
    upper = word.upper()
    return any(
        word.lower() == rule.name or (upper.startswith("WL") and rule.id.startswith(upper))
        for rule in rules.values()
    )


def _unused(message: str, place: Location) -> Result:
    return Result(
        rule="WL001",
        name="unused-suppression",
        verdict=Verdict.NOTE,
        message=message,
        location=place,
        help="remove the comment, or the rule from its list",
    )
