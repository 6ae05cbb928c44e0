"""No message for a mistake without a test that makes the mistake."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
ERRORS = {"CallError", "ConfigError", "SourceError"}
# The joints of a text that is written over several lines are nothing to whoever reads it.
TESTS = re.sub(
    r"([\"'])\s*\n\s*f?\1",
    "",
    "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))),
)


def messages() -> Iterator[tuple[str, str]]:
    """Where a message of the command line is, and the longest part of it that never changes."""
    rooms = ((ROOT / "warplint" / room).rglob("*.py") for room in ("cli", "source"))
    for path in sorted([ROOT / "warplint" / "config.py", *itertools.chain(*rooms)]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Name) and called.id in ERRORS and node.args:
                parts = [
                    part.value
                    for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                ]
                longest = max(parts, key=len, default="")
                if len(longest) > 6:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", longest.strip()


MESSAGES = dict(messages())


def test_they_are_found():
    assert len(MESSAGES) > 40


@pytest.mark.parametrize("place", MESSAGES)
def test_the_mistake_is_made_in_a_test(place):
    assert MESSAGES[place] in TESTS
