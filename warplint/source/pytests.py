"""Tests that reach a finding: the programs of code that only pytest runs.

A test is a program only where it can decide something: a finding in its own lines, or one in a
function that it calls, by name, through the files it imports. What is named alike and is another
function costs a run that comes back with ``not-reached``.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplint.model import Finding, Location, Program
from warplint.source.cache import Cache
from warplint.source.discovery import SourceFile, display_path
from warplint.source.facts import parse
from warplint.source.imports import ImportResolver
from warplint.source.programs import is_test, reaches_tape

__all__ = ["reaching_tests"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)


@dataclass(frozen=True)
class _Test:
    node: str
    """As pytest names it within its file: ``test_fit`` or ``TestFit::test_it``."""
    name: str
    first: int
    last: int


def reaching_tests(
    findings: Sequence[Finding],
    programs: Sequence[Program],
    files: Sequence[SourceFile],
    root: Path | str,
    cache: Cache | None = None,
) -> tuple[Program, ...]:
    """One test for each finding that no program of ``programs`` can decide, each test once."""
    decided = {name for program in programs for name in program.closure}
    open_findings = [f for f in findings if f.location.file not in decided]
    if not open_findings:
        return ()
    root = Path(os.path.abspath(root))
    resolver = ImportResolver(files, root, cache or Cache())
    by_name = {file.display: file for file in files}
    test_files = [f for f in files if is_test(f.path) and f.path.name != "conftest.py"]
    closures = {f.display: resolver.closure(f) for f in test_files}
    tests: dict[str, tuple[_Test, ...]] = {}
    found: dict[tuple[str, str], Program] = {}
    for finding in open_findings:
        target = by_name.get(finding.location.file)
        if target is None:
            continue
        around = _enclosing(target, finding.location.line)
        for file in test_files:
            closure = closures[file.display]
            if target not in closure or not any(reaches_tape(f) for f in closure):
                continue
            if file.display not in tests:
                tests[file.display] = tuple(_tests(file))
            test = next(
                (t for t in tests[file.display] if _reaches(t, file, finding.location, around, closure)), None
            )
            if test is not None:
                found[file.display, test.node] = Program(
                    file=file.display,
                    working_directory=display_path(root, root),
                    closure=tuple(f.display for f in closure),
                    node=test.node,
                )
                break
    return tuple(found[key] for key in sorted(found))


def _tests(file: SourceFile) -> Iterator[_Test]:
    tree, _, _ = parse(file.text)
    for item in tree.body if tree is not None else ():
        if isinstance(item, _FUNCTIONS) and item.name.startswith("test"):
            yield _test(item, item.name)
        elif isinstance(item, ast.ClassDef) and item.name.startswith("Test"):
            for method in item.body:
                if isinstance(method, _FUNCTIONS) and method.name.startswith("test"):
                    yield _test(method, f"{item.name}::{method.name}")


def _test(function: ast.FunctionDef | ast.AsyncFunctionDef, node: str) -> _Test:
    return _Test(node, function.name, function.lineno, function.end_lineno or function.lineno)


def _reaches(
    test: _Test, file: SourceFile, place: Location, around: frozenset[str], closure: Sequence[SourceFile]
) -> bool:
    """Whether the place lies in the test, or in a function whose name is called from it.

    ``around`` are the names of the functions and classes in which the place lies.
    """
    if place.file == file.display and test.first <= place.line <= test.last:
        return True
    seen: set[str] = set()
    stack = list(file.uses.get(test.name, ()))
    while stack:
        name = stack.pop()
        if name in around:
            return True
        if name not in seen:
            seen.add(name)
            for other in closure:
                stack.extend(other.uses.get(name, ()))
    return False


def _enclosing(file: SourceFile, line: int) -> frozenset[str]:
    """The names of all functions and classes around a line."""
    tree, _, _ = parse(file.text)
    around = (
        node.name
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, _DEFINITIONS) and node.lineno <= line <= (node.end_lineno or node.lineno)
    )
    return frozenset(around)
