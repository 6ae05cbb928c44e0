"""Whether the code says that a path is cut on purpose: a word near the statement that cuts it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from warplint.probe.facts import Paths
from warplint.words import CONSTANT, DETACHED, FRAMES, LINES_ABOVE, METHOD, SURROGATE

__all__ = ["FRAMES", "says_detached", "says_meant", "says_surrogate", "says_truncated"]


def says_detached(place: Sequence[Any], paths: Paths) -> bool:
    """Whether the lines above a place (a comment, a function's name) say it is on purpose."""
    return bool(DETACHED.search(_lines(place, paths)))


def says_meant(stack: Sequence[Sequence[Any]], name: str | None, paths: Paths) -> bool:
    """Whether the code at an operation, or at the calls that lead to it, speaks of a constant."""
    words = [name or ""]
    for frame in stack[:FRAMES]:
        words += [_lines(frame, paths), str(frame[2]) if len(frame) > 2 else ""]
    text = "\n".join(words)
    if DETACHED.search(text) or CONSTANT.search(text):
        return True
    return any(METHOD.search(_docstrings(frame, paths)) for frame in stack[:FRAMES])


def says_surrogate(place: Sequence[Any], paths: Paths) -> bool:
    """Whether a function, or the lines above it, say that it is no derivative on purpose."""
    line = int(place[1])
    lines = paths.lines(paths.absolute(paths.display(str(place[0]))))
    body: list[str] = []
    for text in lines[line - 1 : line + 4 * LINES_ABOVE]:
        if body and not text.strip() and len(body) > 2:
            break
        body.append(text)
    return bool(SURROGATE.search("\n".join([_lines(place, paths), *body])))


def says_truncated(place: Sequence[Any], paths: Paths) -> bool:
    """Whether the function a place is in, or the head of its module, says that windows are meant."""
    file, line = paths.absolute(paths.display(str(place[0]))), int(place[1])
    lines = paths.lines(file)
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return says_detached(place, paths)
    around = [ast.get_docstring(tree) or "", *lines[max(0, line - 2 * LINES_ABOVE) : line + 1]]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            end = node.end_lineno or node.lineno
            around += lines[node.lineno - 1 : end] if node.lineno <= line <= end else []
    return bool(DETACHED.search("\n".join(around)))


def _docstrings(place: Sequence[Any], paths: Paths) -> str:
    """Those of a place's module and of the classes and functions around it."""
    file, line = paths.absolute(paths.display(str(place[0]))), int(place[1])
    try:
        tree = ast.parse("\n".join(paths.lines(file)))
    except (SyntaxError, ValueError):
        return ""
    found = [ast.get_docstring(tree) or ""]
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in (n for n in ast.walk(tree) if isinstance(n, definitions)):
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            found.append(ast.get_docstring(node) or "")
    return "\n".join(found)


def _lines(place: Sequence[Any], paths: Paths) -> str:
    line = int(place[1])
    lines = paths.lines(paths.absolute(paths.display(str(place[0]))))
    return "\n".join(lines[max(0, line - LINES_ABOVE - 1) : line])
