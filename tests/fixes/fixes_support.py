"""A result at a marked place of a text, and what its fixes make of the text."""

from __future__ import annotations

from warplint.fixes import candidates
from warplint.fixes.project import Project
from warplint.fixes.source import apply_edits
from warplint.model import Location, Related, Result, Verdict

HEAD = "import numpy as np\nimport warp as wp\n"


def result(
    rule: str,
    text: str,
    at: str,
    message: str = "`x`",
    related: dict[str, str] | None = None,
    file: str = "train.py",
) -> Result:
    """A confirmed result at the first line that contains ``at``; ``related`` maps words to lines."""
    return Result(
        rule=rule,
        name="",
        verdict=Verdict.CONFIRMED,
        message=message,
        location=place(text, at, file),
        related=tuple(Related(place(text, line, file), words) for words, line in (related or {}).items()),
        program=file,
    )


def place(text: str, part: str, file: str = "train.py") -> Location:
    start = text.index(part)
    line = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1)
    rows = part.count("\n")
    end = len(part.rpartition("\n")[2]) + 1 if rows else column + len(part) + 1
    return Location(file, line + 1, column + 1, line + 1 + rows, end)


def all_fixed(rule: str, text: str, at: str, message: str = "`x`", **related: str) -> list[str]:
    """The text with each candidate made, the first one first."""
    words = {name.replace("_", " "): line for name, line in related.items()}
    project = Project(["train.py"], lambda file: text.encode())
    return [
        apply_edits(text.encode(), candidate.edits).decode()
        for candidate in candidates(result(rule, text, at, message, words), project)
    ]


def changed(before: str, after: str) -> list[str]:
    """The lines that a fix has written or moved, without their blanks."""
    old = before.splitlines()
    return [line.strip() for line in after.splitlines() if line not in old]
