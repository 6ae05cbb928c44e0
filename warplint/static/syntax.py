"""Modules in pieces: the standard library's parser says where each definition stands, and libcst
parses only those that somebody asks for.

libcst takes ten times as long as ``ast``, positions take longer still, and a program uses a small
part of what it imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import libcst as cst

from warplint.model import Location
from warplint.source.discovery import SourceFile
from warplint.source.facts import dotted, is_main_test
from warplint.source.facts import parse as parse_plain

__all__ = ["Piece", "SourceModule", "parse"]

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_PLAIN = cst.Module([])


@dataclass(frozen=True)
class Piece:
    """Consecutive lines of a module or of a class body that belong together."""

    kind: str
    """function, class, import, main (the ``__main__`` block) or code."""
    first: int
    last: int
    name: str = ""
    decorators: tuple[str, ...] = ()
    """Dotted names; empty strings for what is no dotted name."""
    header: int = 0
    """The last line of a class before its body."""
    members: tuple[Piece, ...] = ()
    module: str | None = None
    """What is imported: ``from module import names``, or ``import names`` if this is None."""
    level: int = 0
    names: tuple[tuple[str, str | None], ...] = ()
    indented: bool = False


class _Fragment:
    """Some lines, parsed. ``shift`` is what to add to its line numbers."""

    def __init__(self, tree: cst.Module, shift: int) -> None:
        self.tree = tree
        self.shift = shift

    @cached_property
    def positions(self) -> Any:
        from libcst.metadata import MetadataWrapper, PositionProvider

        return MetadataWrapper(self.tree, unsafe_skip_copy=True).resolve(PositionProvider)


class SourceModule:
    """One file: its pieces, the positions of their nodes and the names it is shown by."""

    def __init__(self, file: SourceFile, tree: ast.Module) -> None:
        self.file = file
        self.lines = _LINE_ENDS.split(file.text)
        self.pieces = tuple(_pieces(tree.body))
        self.tree = cst.Module([])
        """The node that stands for the whole file."""
        self._fragments: list[_Fragment] = []
        self._parsed: dict[tuple[int, int], Sequence[Any]] = {}
        self._texts: dict[int, str] = {}

    @property
    def display(self) -> str:
        return self.file.display

    def text(self, piece: Piece) -> str:
        """The lines of a piece."""
        return "\n".join(self.lines[piece.first - 1 : piece.last])

    def statements(self, piece: Piece) -> Sequence[Any]:
        """The libcst statements of a piece; the same nodes each time."""
        return self._parse(piece.first, piece.last, piece.indented, "")

    def class_header(self, piece: Piece) -> Any:
        """The ``ClassDef`` of a class without its body, or None where the two cannot be told apart."""
        column = re.match(r"\s*", self.lines[piece.first - 1])
        indent = column.group() if column else ""
        found = self._parse(piece.first, piece.header, piece.indented, f"{indent}    pass\n")
        return found[0] if found else None

    def _parse(self, first: int, last: int, indented: bool, tail: str) -> Sequence[Any]:
        key = (first, last)
        if key not in self._parsed:
            body = "\n".join(self.lines[first - 1 : last]) + "\n" + tail
            try:
                tree = cst.parse_module("if 1:\n" + body if indented else body)
            except (cst.ParserSyntaxError, RecursionError, ValueError, UnicodeError):
                self._parsed[key] = ()
            else:
                self._fragments.append(_Fragment(tree, first - 1 - indented))
                inner: Any = tree.body[0] if indented else tree
                self._parsed[key] = inner.body.body if indented else inner.body
        return self._parsed[key]

    def location(self, node: cst.CSTNode) -> Location:
        """Where a node of this module stands."""
        # Positions cost more than parsing: only pieces that a finding speaks of get them.
        for fragment in self._fragments:
            where = fragment.positions.get(node)
            if where is not None:
                shift = fragment.shift
                return Location(
                    self.display,
                    where.start.line + shift,
                    where.start.column + 1,
                    where.end.line + shift,
                    where.end.column + 1,
                )
        return Location(self.display, 1)

    def code(self, node: cst.CSTNode, limit: int = 60) -> str:
        """The text of a node on one line, shortened."""
        text = self._texts.get(id(node))
        if text is None:
            # Generating code is slow, and loops ask for the same arguments on every turn.
            text = self._texts[id(node)] = " ".join(_PLAIN.code_for_node(node).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"


def parse(file: SourceFile) -> SourceModule | None:
    """The module of a file; None if it cannot be parsed (``file.problem`` says why)."""
    if not file.text and file.problem:
        return None
    tree, _, _ = parse_plain(file.text)
    return SourceModule(file, tree) if tree is not None else None


def _pieces(body: Sequence[ast.stmt], indented: bool = False) -> Iterator[Piece]:
    """The statements of a body; simple ones that follow each other are one piece."""
    code: tuple[int, int] | None = None
    for position, node in enumerate(body):
        piece = _piece(node, indented)
        shared = code is not None and piece.first <= code[1]
        if piece.kind == "code" or shared:
            code = (code[0] if code else piece.first, piece.last)
            continue
        if code is not None:
            yield Piece("code", *code, indented=indented)
            code = None
        if piece.kind == "import":
            following = body[position + 1 : position + 2]
            if following and following[0].lineno <= piece.last:  # ``import a; b = 1``
                code = (piece.first, piece.last)
                continue
        yield piece
    if code is not None:
        yield Piece("code", *code, indented=indented)


def _piece(node: ast.stmt, indented: bool) -> Piece:
    first, last = node.lineno, node.end_lineno or node.lineno
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        first = min([first, *(d.lineno for d in node.decorator_list)])
        decorators = tuple(dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list)
        if not isinstance(node, ast.ClassDef):
            return Piece("function", first, last, node.name, decorators, indented=indented)
        inner = min(_first_line(s) for s in node.body)
        if inner > node.lineno:
            members = tuple(_pieces(node.body, indented=True))
            return Piece("class", first, last, node.name, decorators, inner - 1, members, indented=indented)
    elif isinstance(node, ast.Import):
        names = tuple((a.name, a.asname) for a in node.names)
        return Piece("import", first, last, names=names, indented=indented)
    elif isinstance(node, ast.ImportFrom):
        names = tuple((a.name, a.asname) for a in node.names)
        return Piece(
            "import", first, last, module=node.module or "", level=node.level, names=names, indented=indented
        )
    elif isinstance(node, ast.If) and is_main_test(node.test) and not node.orelse:
        return Piece("main", first, last, indented=indented)
    return Piece("code", first, last, indented=indented)


def _first_line(node: Any) -> int:
    decorators = [d.lineno for d in getattr(node, "decorator_list", ())]
    return min([node.lineno, *decorators])
