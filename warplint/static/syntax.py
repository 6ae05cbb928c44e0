"""Parsed modules: libcst trees with positions that are computed once, when somebody asks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import libcst as cst

from warplint.model import Location
from warplint.source.discovery import SourceFile

__all__ = ["SourceModule", "parse"]


class SourceModule:
    """One file: its tree, its positions and the names it is shown by."""

    def __init__(self, file: SourceFile, tree: cst.Module) -> None:
        self.file = file
        self.tree = tree
        self._texts: dict[int, str] = {}

    @property
    def display(self) -> str:
        return self.file.display

    @cached_property
    def _positions(self) -> Any:
        # One provider for the whole file, and only for files that a finding speaks of: positions
        # cost more than parsing.
        from libcst.metadata import MetadataWrapper, PositionProvider

        return MetadataWrapper(self.tree, unsafe_skip_copy=True).resolve(PositionProvider)

    def location(self, node: cst.CSTNode) -> Location:
        """Where a node of this module stands."""
        where = self._positions[node]
        return Location(
            self.display,
            where.start.line,
            where.start.column + 1,
            where.end.line,
            where.end.column + 1,
        )

    def code(self, node: cst.CSTNode, limit: int = 60) -> str:
        """The text of a node on one line, shortened."""
        text = self._texts.get(id(node))
        if text is None:
            # Generating code is slow, and loops ask for the same arguments on every turn.
            text = self._texts[id(node)] = " ".join(self.tree.code_for_node(node).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"


def parse(file: SourceFile) -> SourceModule | None:
    """Parse a file with libcst; None if it cannot be parsed (``file.problem`` says why)."""
    if not file.text and file.problem:
        return None
    try:
        return SourceModule(file, cst.parse_module(file.text))
    except (cst.ParserSyntaxError, RecursionError, ValueError, UnicodeError):
        return None
