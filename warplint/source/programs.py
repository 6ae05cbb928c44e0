"""Programs: entry files with their arguments, the unit that is run to decide findings."""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from warplint.model import Program
from warplint.source.discovery import SourceError, SourceFile, display_path, screen
from warplint.source.imports import ImportResolver

__all__ = ["find_programs", "program_for_entry", "reaches_tape"]

_ACTIVE_NAMES = frozenset({"Tape", "launch", "launch_tiled"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find_programs(files: Sequence[SourceFile], root: Path | str) -> tuple[Program, ...]:
    """The programs among ``files``.

    A program has a ``__main__`` block, or top-level code that records or launches; a module that
    only defines things is a library, and a test file is left to the test runner.
    """
    root = Path(os.path.abspath(root))
    if not any(screen(f.data) for f in files):
        return ()
    resolver = ImportResolver(files, root)
    programs = []
    # A bare script may say no more than ``from package.training import train``.
    words = {b"__main__", b"warp"}
    for file in files:
        if screen(file.data):
            stem = file.path.parent.name if file.path.stem == "__init__" else file.path.stem
            words.add(stem.encode(errors="replace"))
    for file in files:
        if _is_test(file.path) or file.path.name == "__init__.py":
            continue
        if not any(word in file.data for word in words):
            continue
        if file.tree is None:
            continue
        if _has_main_block(file.tree) or _runs_at_top_level(file, resolver):
            programs.append(_program(file, (), file.path.parent, resolver.closure(file), root))
    return tuple(sorted(programs, key=lambda p: p.file))


def program_for_entry(entry: str, root: Path | str, files: Sequence[SourceFile] = ()) -> Program:
    """The program for an ``--entry 'train.py --small'`` of the command line."""
    root = Path(os.path.abspath(root))
    try:
        words = shlex.split(entry)
    except ValueError as error:
        raise SourceError(f"cannot split the entry {entry!r}: {error}") from error
    if not words:
        raise SourceError("the entry is empty; it names a file and its arguments")
    path = Path(os.path.abspath(root / words[0]))
    if not path.is_file():
        raise SourceError(f"no such entry file: {words[0]}")
    resolver = ImportResolver(files, root)
    file = resolver.file(path) or SourceFile(path, display_path(path, root))
    return _program(file, tuple(words[1:]), root, resolver.closure(file), root)


@lru_cache(maxsize=4096)
def reaches_tape(file: SourceFile) -> bool:
    """Whether real code of ``file`` mentions a tape or a manual adjoint launch."""
    if not screen(file.data) and b"Tape" not in file.data and b"adjoint" not in file.data:
        return False
    tree = file.tree
    if tree is None:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "Tape":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "Tape":
            return True
        if isinstance(node, ast.ImportFrom) and any(alias.name == "Tape" for alias in node.names):
            return True
        if isinstance(node, ast.keyword) and node.arg == "adjoint":
            value = node.value
            if isinstance(value, ast.Constant) and value.value is True:
                return True
    return False


def _program(
    file: SourceFile,
    arguments: tuple[str, ...],
    directory: Path,
    closure: Sequence[SourceFile],
    root: Path,
) -> Program:
    return Program(
        file=file.display,
        arguments=arguments,
        working_directory=display_path(directory, root),
        closure=tuple(f.display for f in closure),
        reaches_tape=any(reaches_tape(f) for f in closure),
    )


def _is_test(path: Path) -> bool:
    name = path.name
    return name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"


def _has_main_block(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.If) and is_main_test(node.test) for node in tree.body)


def is_main_test(test: ast.expr) -> bool:
    """Whether an expression is ``__name__ == "__main__"`` (either way round)."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(s, ast.Name) and s.id == "__name__" for s in sides) and any(
        isinstance(s, ast.Constant) and s.value == "__main__" for s in sides
    )


def _runs_at_top_level(file: SourceFile, resolver: ImportResolver) -> bool:
    """Whether importing ``file`` launches or records, directly or through what it calls."""
    assert file.tree is not None
    calls = {name for node in _top_level(file.tree) for name in _called(node)}
    if not calls.isdisjoint(_ACTIVE_NAMES):
        return True
    if not calls or (file.path.parent / "__init__.py").is_file():
        return False  # a module of a package is a library unless it says otherwise itself
    uses = [_uses(f) for f in resolver.closure(file)]
    seen: set[str] = set()
    stack = list(calls)
    while stack:
        name = stack.pop()
        if name in _ACTIVE_NAMES:
            return True
        if name not in seen:
            seen.add(name)
            stack.extend(called for table in uses for called in table.get(name, ()))
    return False


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run on import, definitions aside."""
    for node in tree.body:
        if not isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom)):
            yield node


def _called(node: ast.AST) -> Iterator[str]:
    """Simple names of what ``node`` calls, or hands to a call: a callback is called in the end
    (``minimize(fun, x0)``, ``opt.step(closure)``, ``Function.apply(x)``)."""
    for child in ast.walk(node):
        if isinstance(child, ast.Call):
            if isinstance(child.func, ast.Attribute):
                yield child.func.attr
            for part in (child.func, *child.args, *(k.value for k in child.keywords)):
                for name in ast.walk(part):
                    if isinstance(name, ast.Name):
                        yield name.id


@lru_cache(maxsize=4096)
def _uses(file: SourceFile) -> dict[str, frozenset[str]]:
    """What each function and class of a file calls, by simple name."""
    uses: dict[str, set[str]] = {}
    for node in ast.walk(file.tree) if file.tree is not None else ():
        if isinstance(node, _DEFINITIONS):
            uses.setdefault(node.name, set()).update(_called(node))
    return {name: frozenset(called) for name, called in uses.items()}
