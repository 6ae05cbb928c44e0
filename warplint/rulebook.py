"""The rulebook: what each page of ``rules/`` says.

A page is ``WLnnn-name.md``: front matter in TOML between two ``+++`` lines, then Markdown
with one section for each question a reader has. The first fenced Python block below *Bad*
and below *Good* is a complete program, which the test suite runs.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from warplint.model import Precision, Rule

SECTIONS = (
    "What it does",
    "Why it is wrong",
    "How warplint proves it",
    "Bad",
    "Good",
    "Versions",
    "Not reported",
    "References",
)
LEVELS = ("error", "warning", "note")
_FIELDS = ("id", "name", "summary", "level", "precision", "versions", "docs", "signature", "fix")
_REQUIRED = _FIELDS[:7]


class RulebookError(Exception):
    """A page that cannot be read; names the page and what is missing."""


def rules_directory() -> Path:
    """Where the pages are: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "_rules"
    return installed if installed.is_dir() else package.parent / "rules"


@lru_cache(maxsize=1)
def load_rules() -> dict[str, Rule]:
    """All rules by id, in order of their ids."""
    directory = rules_directory()
    pages = sorted(directory.glob("WL*.md"))
    if not pages:
        raise RulebookError(f"no rule pages in {directory}: the installation is incomplete")
    rules = [parse_page(page.read_text(encoding="utf-8"), page.name) for page in pages]
    return {rule.id: rule for rule in rules}


def parse_page(text: str, page: str) -> Rule:
    """Parse one page; ``page`` is its file name and must agree with the front matter."""
    match = re.match(r"\+\+\+\n(.*?)\n\+\+\+\n(.*)", text, re.DOTALL)
    if match is None:
        raise RulebookError(f"{page}: no front matter between '+++' lines")
    front = _toml(match[1], page)
    # Only the link may be empty: Warp's documentation says nothing about suppressions.
    missing = [key for key in _REQUIRED if key not in front or not (front[key] or key == "docs")]
    if missing:
        raise RulebookError(f"{page}: front matter lacks {', '.join(missing)}")
    if page != f"{front['id']}-{front['name']}.md":
        raise RulebookError(f"{page}: front matter says {front['id']} {front['name']}")
    if front["level"] not in LEVELS:
        raise RulebookError(f"{page}: level '{front['level']}' is not one of {', '.join(LEVELS)}")
    try:
        precision = Precision(front["precision"])
    except ValueError:
        raise RulebookError(f"{page}: precision '{front['precision']}' is unknown") from None
    body = match[2].strip() + "\n"
    known = {key: str(front.pop(key)) for key in _FIELDS if key in front}
    known.pop("precision")
    return Rule(
        **known,
        precision=precision,
        text=body,
        bad=example(body, "Bad"),
        good=example(body, "Good"),
        extra={key: str(value) for key, value in front.items()},
    )


def sections(text: str) -> dict[str, str]:
    """Split a page's Markdown at its second-level headings (never inside a code block)."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        if line.startswith("## ") and not fenced:
            current = found.setdefault(line[3:].strip(), [])
        else:
            current.append(line)
    return {title: "\n".join(lines).strip() for title, lines in found.items()}


def example(text: str, section: str) -> str:
    """The first fenced Python block of a section, or nothing."""
    match = re.search(r"^```python\n(.*?)^```", sections(text).get(section, ""), re.DOTALL | re.MULTILINE)
    return match[1] if match else ""


def _toml(text: str, page: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # pragma: no cover - depends on the interpreter
        import tomli as tomllib
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RulebookError(f"{page}: front matter: {error}") from None
