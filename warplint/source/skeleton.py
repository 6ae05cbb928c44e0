"""A file without the bodies of its definitions: what is left is parsed many times faster.

Most files of a tree are only asked for their imports and for what happens when they are imported.
The compiler says whether the file is Python; what strings and comments hold is taken out of the
text, and what is left is cut by lines. Wherever that could differ from what the whole syntax tree
says, there is no skeleton.
"""

from __future__ import annotations

import ast
import re
import symtable
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Skeleton", "skeleton"]

_DOUBLE = r'[^"\\\n]*(?:\\.[^"\\\n]*)*'
_SINGLE = r"[^'\\\n]*(?:\\.[^'\\\n]*)*"
_TEXTS = re.compile(
    r"""(["'#])(?:"""
    rf"""(?<=")(?:(__main__")|""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*""(")|{_DOUBLE}("))"""
    rf"""|(?<=')(?:(__main__')|\'\'[^'\\]*(?:(?:\\.|'(?!\'\'))[^'\\]*)*\'\'(')|{_SINGLE}('))"""
    r"""|(?<=\#)[^\n]*)""",
    re.DOTALL,
)
"""Strings and comments; they lose what they say."""
_LEFT = {1: "# ", 2: '"__main__" ', 5: "'__main__' ", 3: '"" ', 4: '"" ', 6: "'' ", 7: "'' "}
"""What is left of them, by the group that matched last."""
_FORMATTED = re.compile(r"""["'](?:(?<=\W[fFtT].)|(?<=\W[fFtT][rR].)|(?<=\W[rR][fFtT].))""", re.DOTALL)
"""The first quote of a formatted string, which may call things."""
_DEFINITIONS = re.compile(
    r"^(?:@|(?:async[ \t]+)?def\b|class\b)[^\n]*(?:\n(?:[ \t)\]}#][^\n]*|(?=\n)))*", re.MULTILINE
)
_IMPORT = re.compile(r"import\b(?<!\wimport)")
_BEFORE = re.compile(r"(?:.*[;:])?[ \t]*(from\b[ \t\w.]*)?")
_BEHIND = re.compile(r"[ \t]*\([^()]*\)|[^\n;()]*")


@dataclass(frozen=True)
class Skeleton:
    """What is left of a file."""

    tree: ast.Module
    """Its top level without definitions, with strings that say nothing."""
    imports: tuple[Any, ...]
    """All import statements, in the order of the file."""


def skeleton(text: str, unless: Callable[[str], bool]) -> Skeleton | None:
    """The skeleton of a file; None where it is no Python, where its code is one of which ``unless`` is
    true, or where only the whole tree tells."""
    if "\f" in text:
        return None
    lines = "\n" + text
    if "\r" in text:
        lines = lines.replace("\r\n", "\n").replace("\r", "\n")
    if sys.version_info >= (3, 12) and _may_nest(lines):
        return None
    code = _TEXTS.sub(lambda found: _LEFT[found.lastindex or 1], lines).replace("\\\n", " ")
    if not code.isascii() or unless(code):
        return None
    if unless(lines) and any(unless(formatted) for formatted in _formatted(lines)):
        return None
    statements = _imports(code)
    top = _DEFINITIONS.sub("", code)
    if statements is None or _FORMATTED.search(top) or not _compiles(text):
        return None
    try:
        imports = ast.parse("\n".join(statements)).body
        tree = ast.parse(top)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in imports):
        return None
    return Skeleton(tree, tuple(imports))


def _imports(code: str) -> list[str] | None:
    """All import statements; None where one is not understood."""
    found = []
    for word in _IMPORT.finditer(code):
        begin = code.rfind("\n", 0, word.start()) + 1
        before, behind = _BEFORE.fullmatch(code, begin, word.start()), _BEHIND.match(code, word.end())
        if before is None or behind is None:
            return None
        found.append(f"{before[1] or ''}import{behind[0]}")
    return found


def _compiles(text: str) -> bool:
    """Whether a text is Python; building the tree that says why not costs as much again."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symtable.symtable(text, "<unknown>", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _formatted(lines: str) -> Iterator[str]:
    for whole in _TEXTS.finditer(lines):
        if _FORMATTED.match(lines, whole.start()):
            yield whole.group()


def _may_nest(lines: str) -> bool:
    """Whether a formatted string may hold its own quotes, as it may since Python 3.12."""
    for start in _FORMATTED.finditer(lines):
        whole = _TEXTS.match(lines, start.start())
        if whole is None or whole.group().count("{") != whole.group().count("}"):
            return True
    return False
