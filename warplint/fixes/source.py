"""One file as fixes see it: its text, its syntax, and changes that touch nothing else.

Positions come from the standard library's parser: nothing is ever printed from a tree, so what lies
outside a change keeps its bytes, whatever its line ends, tabs, byte order mark or layout.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from warplint.model import Edit, Location
from warplint.source.facts import parse

__all__ = ["BOM", "Change", "Source", "apply_edits"]

BOM = b"\xef\xbb\xbf"
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_REST_OF_LINE = re.compile(r"[ \t\f]*(#[^\r\n]*)?(\r\n|\r|\n|$)")


@dataclass(frozen=True, order=True)
class Change:
    """Replace the characters from ``start`` to ``end`` of a file's text."""

    file: str
    start: int
    end: int
    text: str


class Source:
    """The text of one file with positions, and the building blocks of changes."""

    def __init__(self, display: str, data: bytes) -> None:
        self.display = display
        self.data = data
        self.text = data.decode("utf-8-sig")
        ends = [m.end() for m in _LINE_ENDS.finditer(self.text)]
        self.starts = [0, *ends]
        tree, problem, _ = parse(self.text)
        if tree is None:
            raise ValueError(problem)
        self.tree = tree
        self.nodes = tuple(ast.walk(tree))
        """All nodes: many results ask for them, of a file that may be long."""
        self.parents: dict[ast.AST, ast.AST] = {
            child: node for node in self.nodes for child in ast.iter_child_nodes(node)
        }

    # -- positions -------------------------------------------------------------------------

    def start(self, node: ast.AST) -> int:
        """Where a node begins; a decorated definition begins with its decorators."""
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        offset = self._offset(line, column)
        if getattr(node, "decorator_list", None):
            first = self.start(node.decorator_list[0])  # type: ignore[attr-defined]
            offset = min(offset, self.text.rindex("@", 0, first))
        return offset

    def end(self, node: ast.AST) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def segment(self, node: ast.AST) -> str:
        """The text of a node, as it is written."""
        return self.text[self.start(node) : self.end(node)]

    def line_of(self, offset: int) -> int:
        """The number of the line (1-based) that an offset lies on."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.starts[middle] <= offset else (low, middle)
        return low + 1

    def _offset(self, line: int, column: int) -> int:
        start = self.starts[line - 1]
        if column == 0:
            return start
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:column].decode())

    @cached_property
    def newline(self) -> str:
        """The line end that the file uses."""
        found = _LINE_ENDS.search(self.text)
        return found.group() if found else "\n"

    # -- finding nodes ---------------------------------------------------------------------

    def at(self, place: Location) -> ast.AST | None:
        """The innermost node that begins where a location does, else the statement there."""
        exact = [
            node
            for node in self._by_line.get(place.line, ())
            if self.start(node) - self.starts[place.line - 1] + 1 == place.column
        ]
        if place.end_column:
            for node in exact:
                line = node.end_lineno  # type: ignore[attr-defined]
                if (
                    line == place.end_line
                    and self.end(node) - self.starts[line - 1] + 1 == place.end_column
                    and not (isinstance(node, ast.Expr) or _context(node))
                ):
                    return node
        return self.statement_at(place.line, place.column)

    def statement_at(self, line: int, column: int = 1) -> ast.stmt | None:
        """The innermost statement that covers a line; of several, the one at the column."""
        best: ast.stmt | None = None
        for first, last, node in self._statements:
            if first <= line <= last:
                inside = first < line or self.start(node) - self.starts[line - 1] < max(column, 1)
                if best is None or inside or first > best.lineno:
                    best = node
        return best

    @cached_property
    def _by_line(self) -> dict[int, list[ast.AST]]:
        """Nodes by the line that they begin on; a decorated definition begins on its ``def``."""
        found: dict[int, list[ast.AST]] = {}
        for node in self.nodes:
            if hasattr(node, "lineno"):
                found.setdefault(node.lineno, []).append(node)
        return found

    @cached_property
    def _statements(self) -> list[tuple[int, int, ast.stmt]]:
        """Statements with their first and last lines, decorators included."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.stmt):
                first = self.line_of(self.start(node))
                found.append((first, node.end_lineno or first, node))
        return found

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that a node is part of."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def enclosing(self, node: ast.AST, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """The nodes of these kinds around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, kinds):
                yield node

    def function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        for found in self.enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
            return found if isinstance(found, ast.FunctionDef) else None
        return None

    def scope_of(self, node: ast.AST) -> ast.FunctionDef | ast.Module:
        return self.function_of(node) or self.tree

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements that this one stands among."""
        parent = self.parents[statement]
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def loads(self, node: ast.AST, name: str) -> list[ast.Name]:
        """The places below a node where a name is read."""
        found = (n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name)
        return [n for n in found if isinstance(n.ctx, ast.Load)]

    def names_in(self, node: ast.AST) -> set[str]:
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

    # -- spelling --------------------------------------------------------------------------

    @cached_property
    def _imports(self) -> tuple[str | None, dict[str, str]]:
        module, names = None, {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "warp":
                        module = alias.asname or "warp"
                    elif alias.name.startswith("warp.") and not alias.asname:
                        module = module or "warp"
            elif isinstance(node, ast.ImportFrom) and node.module == "warp" and not node.level:
                names.update({alias.name: alias.asname or alias.name for alias in node.names})
        return module, names

    def warp(self, name: str) -> str | None:
        """How this file spells a name of Warp, or None if it has no way to."""
        module, names = self._imports
        return names.get(name) or (f"{module}.{name}" if module else None)

    def is_warp(self, node: ast.AST, *names: str) -> bool:
        """Whether an expression is one of these names of Warp."""
        module, imported = self._imports
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            return node.value.id == module and node.attr in names
        return isinstance(node, ast.Name) and any(imported.get(name) == node.id for name in names)

    @cached_property
    def _modules(self) -> frozenset[str]:
        """Names that imports have bound, of modules or of what is in them."""
        return frozenset(
            (alias.asname or alias.name).partition(".")[0]
            for node in self.nodes
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        )

    def is_of_module(self, node: ast.AST) -> bool:
        """Whether an attribute is one of something that was imported."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self._modules

    def may_be_module(self, node: ast.AST) -> bool:
        """Whether a plain name, or an attribute of a module."""
        return isinstance(node, ast.Name) or self.is_of_module(node)

    def fresh(self, scope: ast.AST, base: str) -> str:
        """A name that nothing in this file uses yet."""
        taken = self.names_in(self.tree) | {a.arg for a in self.nodes if isinstance(a, ast.arg)}
        taken |= {n.name for n in self.nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        return name

    # -- changes ---------------------------------------------------------------------------

    def replace(self, node: ast.AST, text: str) -> Change:
        return Change(self.display, self.start(node), self.end(node), text)

    def indent(self, statement: ast.stmt) -> str:
        """The blanks in front of the line that a statement begins on."""
        begin = self.starts[self.line_of(self.start(statement)) - 1]
        found = re.compile(r"[ \t\f]*").match(self.text, begin)
        return found.group() if found else ""

    def owns_lines(self, statement: ast.stmt) -> bool:
        """Whether nothing but blanks and a comment shares the statement's lines."""
        start, end = self.start(statement), self.end(statement)
        begin = self.starts[self.line_of(start) - 1]
        return not self.text[begin:start].strip(" \t\f") and self._line_ends(end)

    def _line_ends(self, offset: int) -> bool:
        return _REST_OF_LINE.match(self.text, offset) is not None

    def insert_before(self, statement: ast.stmt, *lines: str, indent: str | None = None) -> Change:
        """New lines above a statement, or on its line where it does not begin one."""
        start = self.start(statement)
        begin = self.starts[self.line_of(start) - 1]
        if self.text[begin:start].strip(" \t\f"):
            return Change(self.display, start, start, "".join(f"{line}; " for line in lines))
        if indent is None:
            indent = self.text[begin:start]
        text = "".join(f"{indent}{line}{self.newline}" if line else self.newline for line in lines)
        return Change(self.display, begin, begin, text)

    def insert_after(self, statement: ast.stmt, *lines: str, indent: str | None = None) -> Change:
        """New lines below a statement, or on its line where more follows on it."""
        end = self.end(statement)
        rest = _REST_OF_LINE.match(self.text, end)
        header = not self.owns_first_line(statement)
        if rest is None or (header and statement.lineno == statement.end_lineno):
            return Change(self.display, end, end, "".join(f"; {line}" for line in lines))
        if indent is None:
            indent = self.indent(statement)
        text = "".join(f"{indent}{line}{self.newline}" if line else self.newline for line in lines)
        if not rest.group(2):  # the last line of a file without a line end
            text = self.newline + text[: len(text) - len(self.newline)]
        return Change(self.display, rest.end(), rest.end(), text)

    def owns_first_line(self, statement: ast.stmt) -> bool:
        start = self.start(statement)
        return not self.text[self.starts[self.line_of(start) - 1] : start].strip(" \t\f")

    def delete(self, statement: ast.stmt) -> Change:
        """Take a statement out, with its lines if they are its own; a block never becomes empty."""
        if len(self.block_of(statement)) == 1 and not isinstance(self.parents[statement], ast.Module):
            return self.replace(statement, "pass")
        start, end = self.start(statement), self.end(statement)
        if self.owns_lines(statement):
            rest = _REST_OF_LINE.match(self.text, end)
            begin = self.starts[self.line_of(start) - 1]
            return Change(self.display, begin, rest.end() if rest else end, "")
        after = re.compile(r"[ \t]*;[ \t]*").match(self.text, end)
        if after and not self._line_ends(after.end()):
            return Change(self.display, start, after.end(), "")
        before = re.compile(r"[ \t]*;[ \t]*$").search(self.text, self.starts[statement.lineno - 1], start)
        return Change(self.display, before.start() if before else start, end, "")

    def lines_of(self, statement: ast.stmt, indent: str) -> list[str]:
        """The lines of a statement that owns them, moved to another indentation."""
        start, end = self.start(statement), self.end(statement)
        begin = self.starts[self.line_of(start) - 1]
        rest = _REST_OF_LINE.match(self.text, end)
        stop = rest.end() - len(rest.group(2)) if rest else end
        old = self.text[begin:start]
        lines = _LINE_ENDS.split(self.text[begin:stop])
        inside = self._string_lines(statement)
        first = self.line_of(start)
        return [
            line if number + first in inside or not line.startswith(old) else indent + line[len(old) :]
            for number, line in enumerate(lines)
        ]

    def _string_lines(self, statement: ast.stmt) -> set[int]:
        """Lines that begin inside a string: their blanks belong to it."""
        found: set[int] = set()
        for node in ast.walk(statement):
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno:
                found.update(range(node.lineno + 1, node.end_lineno + 1))
        return found

    def unit(self, statement: ast.stmt) -> str:
        """How much deeper this file indents a block, seen from around a statement."""
        for node in self.nodes:
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
                outer, inner = self.indent(node), self.indent(body[0])
                if inner.startswith(outer) and inner != outer:
                    return inner[len(outer) :]
        return "    "

    # -- results ---------------------------------------------------------------------------

    def place(self, change: Change) -> Location:
        """The region of a change in lines and columns."""
        first, last = self.line_of(change.start), self.line_of(change.end)
        return Location(
            self.display,
            first,
            change.start - self.starts[first - 1] + 1,
            last,
            change.end - self.starts[last - 1] + 1,
        )

    def edits(self, changes: Sequence[Change]) -> tuple[Edit, ...]:
        return tuple(Edit(self.place(change), change.text) for change in sorted(changes))


def _context(node: ast.AST) -> bool:
    return isinstance(node, (ast.arguments, ast.withitem, ast.keyword))


def apply_edits(data: bytes, edits: Sequence[Edit]) -> bytes:
    """The bytes of a file with edits made; those that overlap are a ``ValueError``."""
    text = data.decode("utf-8-sig")
    starts = [0, *(m.end() for m in _LINE_ENDS.finditer(text))]
    pieces, done = [], 0
    regions = [
        (
            starts[e.location.line - 1] + e.location.column - 1,
            starts[e.location.end_line - 1] + e.location.end_column - 1,
            e.text,
        )
        for e in edits
    ]
    for start, end, new in sorted(regions, key=lambda region: region[:2]):
        if start < done or end < start:
            raise ValueError("edits overlap")
        pieces += [text[done:start], new]
        done = end
    head = BOM if data.startswith(BOM) else b""
    return head + "".join([*pieces, text[done:]]).encode()
