"""What the syntax of one file says about it: small enough to be kept for every file of a tree.

The tree itself is dropped again: those of a large project together take more than a gigabyte.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from warplint.source.skeleton import skeleton

__all__ = ["FileFacts", "ImportedModule", "is_main_test", "parse", "paused_collector", "uses_of"]

_TAPE = re.compile(r"\bTape\b|\badjoint\s*=\s*True")
_TAPE_WORDS = ("Tape", "adjoint")
"""What the pattern cannot match without: a plain search is many times faster."""
_HANDLE_WORDS = ("tape", "Tape", "backward", "adjoint")
_HANDLES = (
    re.compile(r"tape\b(?<!\brecord_tape)"),
    *(re.compile(rf"{word}\b(?<!\w{word})") for word in ("Tape", "backward", "adjoint")),
)
"""Names of what may be a tape, each by itself: a pattern that begins with a word is found fast."""
_RECORDING = frozenset({"Tape", "launch", "launch_tiled", "capture_launch"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS: dict[type, tuple[str, ...]] = {
    kind: tuple(f for f in kind._fields if f in ("body", "orelse", "finalbody", "handlers", "cases"))
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, (ast.stmt, ast.ExceptHandler, ast.match_case))
}


@dataclass(frozen=True)
class ImportedModule:
    """One module named by an import statement, and the names taken from it."""

    name: str
    level: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileFacts:
    """Everything that is asked about a file before it is interpreted."""

    problem: str | None = None
    """Why it does not parse."""
    line: int = 1
    column: int = 1
    """Where that is."""
    imports: tuple[ImportedModule, ...] = ()
    """Every import, wherever it stands (function bodies included)."""
    main: bool = False
    """It has a ``__main__`` block."""
    calls: tuple[str, ...] = ()
    """Simple names of what its top-level code calls or hands to a call."""
    tape: bool = False
    """Real code mentions a tape or a manual adjoint launch."""
    taped: tuple[str, ...] = ()
    """Functions and methods that handle a tape, by qualified name, in the order of the file."""
    effects: tuple[ImportedModule, ...] = ()
    """Modules that it calls or assigns into when it is imported."""

    @classmethod
    def of(cls, text: str) -> FileFacts:
        """The facts of a file with this text."""
        bare = skeleton(text, _mentions_handles)
        if bare is not None:
            return cls._at_import(bare.tree, bare.imports)
        tree, problem, (line, column) = parse(text)
        if tree is None:
            return cls(problem, line, column)
        imports = [n for n in statements(tree.body) if isinstance(n, (ast.Import, ast.ImportFrom))]
        imports.sort(key=lambda node: (node.lineno, node.col_offset))
        return replace(
            cls._at_import(tree, imports),
            tape=_mentions_tape(text) and any(_is_tape(n) for n in ast.walk(tree)),
            taped=tuple(_taped(tree, _lines_with_handles(text))),
        )

    @classmethod
    def _at_import(cls, tree: ast.Module, imports: Sequence[Any]) -> FileFacts:
        """What the top level of a file says; definitions may be missing in the tree."""
        return cls(
            imports=tuple(_imports(imports)),
            main=any(isinstance(node, ast.If) and is_main_test(node.test) for node in tree.body),
            calls=tuple(sorted({name for node in _top_level(tree) for name in called_names(node)})),
            effects=_effects(tree, imports),
        )

    def to_plain(self) -> list[Any]:
        """Lists and scalars, for a cache."""
        imports, effects = (
            [[i.name, i.level, *i.names] for i in items] for items in (self.imports, self.effects)
        )
        calls, taped = list(self.calls), list(self.taped)
        return [self.problem, self.line, self.column, imports, self.main, calls, self.tape, taped, effects]

    @classmethod
    def from_plain(cls, plain: Any) -> FileFacts:
        problem, line, column, imports, main, calls, tape, taped, effects = plain
        found, acted = (
            tuple(ImportedModule(name, level, tuple(names)) for name, level, *names in items)
            for items in (imports, effects)
        )
        return cls(problem, line, column, found, main, tuple(calls), tape, tuple(taped), acted)


def uses_of(text: str) -> dict[str, frozenset[str]]:
    """What each function and class of a file calls, by simple name."""
    uses: dict[str, set[str]] = {}
    tree, _, _ = parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _DEFINITIONS):
            uses.setdefault(node.name, set()).update(called_names(node))
    return {name: frozenset(called) for name, called in uses.items()}


def parse(text: str) -> tuple[ast.Module | None, str | None, tuple[int, int]]:
    """The standard library's syntax tree, or None with the problem, its line and its column."""
    try:
        with warnings.catch_warnings():
            # invalid escapes in the checked code are not the user's concern here
            warnings.simplefilter("ignore")
            return ast.parse(text), None, (1, 1)
    except SyntaxError as error:
        line = error.lineno or 1
        return None, f"syntax error (line {line}): {error.msg}", (line, max(error.offset or 1, 1))
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"cannot be parsed: {error}", (1, 1)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Without the cyclic garbage collector: it would look at every node of every tree again and
    again, which takes several times as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def is_main_test(test: ast.expr) -> bool:
    """Whether an expression is ``__name__ == "__main__"`` (either way round)."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides) and any(
        isinstance(s, ast.Constant) and s.value == "__main__" for s in sides
    )


def called_names(node: ast.AST) -> Iterator[str]:
    """Simple names of what ``node`` calls, or hands to a call: a callback is called in the end
    (``minimize(fun, x0)``, ``opt.step(closure)``, ``Function.apply(x)``)."""
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            if isinstance(child.func, ast.Attribute):
                if _root(child.func) in ("wp", "warp") and child.func.attr not in _RECORDING:
                    continue  # a function of Warp's own, whatever others are called
                yield child.func.attr
            for part in (child.func, *child.args, *(k.value for k in child.keywords)):
                for name in ast.walk(part):
                    if isinstance(name, ast.Name):
                        yield name.id


def statements(body: Sequence[Any]) -> Iterator[Any]:
    """All statements below ``body``, without looking into expressions."""
    stack = list(body)
    while stack:
        node = stack.pop()
        yield node
        for name in _BLOCKS[type(node)]:
            stack.extend(getattr(node, name))


def _imports(found: Sequence[Any]) -> Iterator[ImportedModule]:
    for node in found:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield ImportedModule(alias.name)
        else:
            yield ImportedModule(node.module or "", node.level, tuple(a.name for a in node.names))


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import, definitions aside."""
    for node in tree.body:
        if not isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom)):
            yield node


_HARMLESS = sys.stdlib_module_names | {"jax", "matplotlib", "numpy", "pytest", "torch"}
"""Packages whose state decides nothing here."""


def _effects(tree: ast.Module, imports: Sequence[Any]) -> tuple[ImportedModule, ...]:
    """The modules that importing this one may change: it calls or assigns into them."""
    foreign: dict[str, ImportedModule] = {}
    for node in reversed(imports):  # of several by one name, the first
        for a in node.names:
            if isinstance(node, ast.Import):
                foreign[a.asname or a.name.partition(".")[0]] = ImportedModule(a.name)
            else:
                foreign[a.asname or a.name] = ImportedModule(node.module or "", node.level, (a.name,))
    acted: dict[ImportedModule, None] = {}
    for name in (name for node in _top_level(tree) for name in _changed(node)):
        module = foreign.get(name)
        if module is not None and module.name.partition(".")[0] not in _HARMLESS:
            acted[module] = None
    return tuple(acted)


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names through which a top-level statement may change something."""
    if isinstance(node, ast.If) and is_main_test(node.test):
        return
    for inner in statements([node]):
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Call):
            called = _root(inner.value.func)
            if called in ("setattr", "exec"):
                yield from (_root(a) for a in inner.value.args[:1])
            elif called not in ("wp", "warp"):
                yield called
        elif isinstance(inner, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            found = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
            yield from (_root(t) for t in found if isinstance(t, (ast.Attribute, ast.Subscript)))


def dotted(node: Any) -> str:
    """``a.b.c`` of a chain of names, or an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _root(node: Any) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_tape(node: ast.AST) -> bool:
    """``Tape`` in any spelling, or ``adjoint=True``."""
    if isinstance(node, ast.Name):
        return node.id == "Tape"
    if isinstance(node, ast.Attribute):
        return node.attr == "Tape"
    if isinstance(node, ast.ImportFrom):
        return any(alias.name == "Tape" for alias in node.names)
    if isinstance(node, ast.keyword) and node.arg == "adjoint":
        return isinstance(node.value, ast.Constant) and node.value.value is True
    return False


def _handles_tape(node: ast.AST) -> bool:
    """A tape, a name that says it holds one, or a backward call."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return (name.endswith("tape") and name != "record_tape") or name == "backward" or _is_tape(node)


def _mentions_tape(text: str) -> bool:
    return any(word in text for word in _TAPE_WORDS) and _TAPE.search(text) is not None


def _mentions_handles(code: str) -> bool:
    return any(handle.search(code) for handle in _HANDLES)


def _lines_with_handles(text: str) -> list[int]:
    """Lines, counted from 1, on which something may handle a tape."""
    found = set()
    for word in _HANDLE_WORDS:
        line, last, position = 1, 0, text.find(word)
        while position >= 0:
            line += text.count("\n", last, position)
            found.add(line)
            last, position = position, text.find(word, position + len(word))
    return sorted(found)


def _taped(tree: ast.Module, lines: list[int]) -> Iterator[str]:
    """Functions and methods that handle a tape; ``lines`` are the only ones that can."""

    def handles(function: ast.AST) -> bool:
        first, last = function.lineno, function.end_lineno  # type: ignore[attr-defined]
        behind = bisect_left(lines, first)
        if behind == len(lines) or lines[behind] > last:
            return False
        return any(_handles_tape(n) for n in ast.walk(function))

    for node in tree.body if lines else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if handles(node):
                yield node.name
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, (ast.FunctionDef, ast.AsyncFunctionDef)) and handles(member):
                    yield f"{node.name}.{member.name}"
