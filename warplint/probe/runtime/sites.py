"""Call sites: which line of the user's code an operation belongs to, and what to call an array."""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_SKIPPED_FILES = ("<frozen ", "<string>")

MAX_FRAMES = 16


class Sites:
    """Names user frames; files below ``root`` are named relative to it, others absolutely.

    ``warp_directory`` is the installed package: its frames never count as the user's.
    """

    def __init__(self, root: str, warp_directory: str) -> None:
        self.root = os.path.realpath(root) + os.sep
        self._skip = (_HERE, os.path.realpath(warp_directory) + os.sep)
        self._names: dict[str, str | None] = {}
        self._places: dict[int, tuple[Any, dict[int, tuple[str, int, str]] | None]] = {}
        """By a code object: its places that were met, None where it is not the user's."""

    def name(self, filename: str) -> str | None:
        """The reported name of a code object's file; None when it is not the user's."""
        try:
            return self._names[filename]
        except KeyError:
            pass
        name: str | None
        if filename.startswith(_SKIPPED_FILES):
            name = None
        else:
            path = os.path.realpath(filename)
            if path.startswith(self._skip) or os.path.basename(path) == "runpy.py":
                name = None
            elif path.startswith(self.root):
                name = path[len(self.root) :].replace(os.sep, "/")
            else:
                name = path
        self._names[filename] = name
        return name

    def stack(self, depth: int = 1) -> tuple[tuple[str, int, str], ...]:
        """User frames from the innermost outwards, as (file, line, function)."""
        frame = sys._getframe(depth)
        frames: list[tuple[str, int, str]] = []
        places = self._places
        while frame is not None and len(frames) < MAX_FRAMES:
            code = frame.f_code
            known = places.get(id(code)) or self._meet(code)
            if known[1] is not None:
                # Python looks up the line in a table, anew for each frame and each call.
                place = known[1].get(frame.f_lasti)
                if place is None:
                    name = self._names[code.co_filename] or ""
                    place = known[1][frame.f_lasti] = (name, frame.f_lineno, code.co_name)
                frames.append(place)
            frame = frame.f_back  # type: ignore[assignment]
        return tuple(frames)

    def _meet(self, code: Any) -> tuple[Any, dict[int, tuple[str, int, str]] | None]:
        # The code object is kept: its id must not become another's.
        known = self._places[id(code)] = (code, None if self.name(code.co_filename) is None else {})
        return known

    def describe(self, error: BaseException) -> str:
        """An exception in one line, with the user's line it came from."""
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        if len(lines) > 1:
            text = text.rstrip(":") + " …"
        place = ""
        traceback = error.__traceback__
        while traceback is not None:
            name = self.name(traceback.tb_frame.f_code.co_filename)
            if name is not None and not os.path.isabs(name):
                place = f" ({name}:{traceback.tb_lineno})"
            traceback = traceback.tb_next
        return text + place

    def path(self, name: str) -> str:
        """The file that a reported name stands for."""
        return name if os.path.isabs(name) else self.root + name

    def label(self, stack: tuple[tuple[str, int, str], ...]) -> str | None:
        """What the user calls the array born under ``stack``: the target it was assigned to.

        A birth inside a helper (``return wp.zeros(n)``) is named by the first caller whose
        statement is an assignment; list displays and comprehensions get ``[...]``.
        """
        for file, line, _ in stack[:6]:
            target = _assigned_name(self.path(file), line)
            if target is not None:
                return target
        return None


_TREES: dict[str, list[tuple[int, int, Any]]] = {}


def _statements(path: str) -> list[tuple[int, int, Any]]:
    if path not in _TREES:
        try:
            tree = ast.parse("".join(linecache.getlines(path)))
        except (SyntaxError, ValueError):
            _TREES[path] = []
        else:
            nodes: list[Any] = list(ast.walk(tree))
            _TREES[path] = [
                (node.lineno, node.end_lineno or node.lineno, node)
                for node in nodes
                if isinstance(node, (ast.Assign, ast.AnnAssign)) or _grows(node) is not None
            ]
    return _TREES[path]


def _grows(node: Any) -> Any:
    """The list that a statement adds to: ``states += [...]``, ``states.append(...)``."""
    if isinstance(node, ast.AugAssign):
        return node.target if isinstance(node.value, (ast.List, ast.ListComp)) else None
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return call.func.value if call.func.attr in ("append", "extend", "insert") else None
    return None


@functools.cache
def _assigned_name(path: str, line: int) -> str | None:
    best: Any = None
    span = 1 << 30
    for first, last, node in _statements(path):
        if first <= line <= last and last - first < span:
            best, span = node, last - first
    if best is None:
        return None
    grown = _grows(best)
    if grown is not None:
        return ast.unparse(grown) + "[...]"
    target = best.targets[0] if isinstance(best, ast.Assign) else best.target
    value = best.value
    if isinstance(value, ast.Lambda):
        return None
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for name, part in zip(target.elts, value.elts):
            if part.lineno <= line <= (part.end_lineno or part.lineno):
                target, value = name, part
                break
    text = ast.unparse(target)
    if isinstance(value, (ast.List, ast.ListComp, ast.Tuple, ast.Dict, ast.DictComp)):
        text += "[...]"
    return text
