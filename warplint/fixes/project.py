"""The files that a fix may look at and change, and who launches which kernel in them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from warplint.fixes.source import Change, Source
from warplint.model import Edit, Location, Result

__all__ = ["Candidate", "Launch", "Problem", "Project", "argument", "method_calls", "numbers_only"]


@dataclass(frozen=True)
class Candidate:
    """A change that may mend what a result speaks of; whether it does is measured."""

    title: str
    edits: tuple[Edit, ...]
    same_values: bool = True
    """Whether the values that the program computes stay what they were."""

    @property
    def size(self) -> int:
        return sum(1 + e.text.count("\n") + e.location.end_line - e.location.line for e in self.edits)


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, as it is written."""

    source: Source
    call: ast.Call
    inputs: ast.List | ast.Tuple | None
    outputs: ast.List | ast.Tuple | None
    plain: bool
    """Whether all arguments are spelled out in these two."""

    @property
    def arguments(self) -> list[ast.expr]:
        found: list[ast.expr] = []
        for group in (self.inputs, self.outputs):
            found += group.elts if group else []
        return found

    @property
    def dim(self) -> ast.expr | None:
        return argument(self.call, 1, "dim")

    def append(self, text: str) -> Change:
        """One more input, behind all others."""
        return _append(self.source, self.inputs or self.outputs, text)

    def append_last(self, text: str) -> Change:
        """One more argument, behind all others."""
        return _append(self.source, self.outputs or self.inputs, text)


def _append(source: Source, group: Any, text: str) -> Change:
    if not group.elts:
        at = source.start(group) + 1
        return Change(source.display, at, at, text)
    at = source.end(group.elts[-1])
    return Change(source.display, at, at, f", {text}")


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """An argument of a call, by name or by position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if position < len(call.args) else None


def method_calls(node: ast.AST, name: str) -> Iterator[ast.Call]:
    """The calls ``x.name(...)`` below a node."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == name:
            yield call


class Project:
    """Sources by display path, parsed when they are asked for."""

    def __init__(self, files: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self.files = tuple(dict.fromkeys(files))
        self._read = read
        self._sources: dict[str, Source | None] = {}

    def source(self, file: str) -> Source | None:
        """A file that may be changed; None for one that may not, or does not parse."""
        if file not in self._sources:
            data = self._read(file) if file in self.files else None
            try:
                self._sources[file] = Source(file, data) if data is not None else None
            except (ValueError, RecursionError):
                self._sources[file] = None
        return self._sources[file]

    def sources(self, word: str) -> Iterator[Source]:
        """The files that contain a word; only those are parsed."""
        for file in self.files:
            data = self._read(file)
            if data is not None and word.encode() in data:
                found = self.source(file)
                if found is not None:
                    yield found

    def functions(self, name: str) -> list[tuple[Source, ast.FunctionDef]]:
        """All definitions of a name."""
        return [
            (source, node)
            for source in self.sources(name)
            for node in source.nodes
            if isinstance(node, ast.FunctionDef) and node.name == name
        ]

    def launches(self, kernel: ast.FunctionDef) -> list[Launch] | None:
        """Every launch of a kernel; None if it is also used in ways that are not understood."""
        found: list[Launch] = []
        for source in self.sources(kernel.name):
            for node in source.nodes:
                if not _names(node, kernel.name):
                    continue
                parent: ast.AST = source.parents[node]
                if isinstance(parent, ast.keyword):
                    parent = source.parents[parent]
                launched = isinstance(parent, ast.Call) and source.is_warp(
                    parent.func, "launch", "launch_tiled"
                )
                if launched and isinstance(parent, ast.Call) and argument(parent, 0, "kernel") is node:
                    found.append(_launch(source, parent))
                elif isinstance(node, ast.Name) or source.is_of_module(node):
                    return None  # (anything else's attribute of this name is another thing)
        return found

    def calls(self, function: ast.FunctionDef) -> list[tuple[Source, ast.Call]] | None:
        """Every call of a function or method by its name; None if it is used in another way."""
        given = [*function.args.posonlyargs, *function.args.args]
        method = bool(given) and given[0].arg in ("self", "cls")
        found = []
        for source in self.sources(function.name):
            for node in source.nodes:
                if not _names(node, function.name):
                    continue
                if isinstance(node, ast.Name) == method or (not method and not source.may_be_module(node)):
                    continue  # of the same name, and another function
                parent = source.parents[node]
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    return None
                found.append((source, parent))
        return found

    def candidate(self, title: str, changes: Sequence[Change], *, same_values: bool = True) -> Candidate:
        edits: list[Edit] = []
        for file in dict.fromkeys(change.file for change in changes):
            source = self.source(file)
            assert source is not None
            edits += source.edits([change for change in changes if change.file == file])
        return Candidate(title, tuple(edits), same_values)


@dataclass(frozen=True)
class Problem:
    """A result with the project around it: what each kind of fix is given."""

    result: Result
    project: Project

    @property
    def source(self) -> Source | None:
        return self.project.source(self.result.location.file)

    def node(self, place: Location | None = None) -> tuple[Source, ast.AST] | None:
        """The node at a place (of the result, unless another is given)."""
        place = place or self.result.location
        source = self.project.source(place.file)
        node = source.at(place) if source else None
        return (source, node) if source and node is not None else None

    def related(self, *words: str) -> Iterator[Location]:
        """Places told beside the result, by words of what happens there."""
        for site in self.result.related:
            if any(word in site.message for word in words):
                yield site.location

    @property
    def quoted(self) -> list[str]:
        """What the message names, in order."""
        return self.result.message.split("`")[1::2]


def _names(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)


def _launch(source: Source, call: ast.Call) -> Launch:
    inputs, outputs = argument(call, 2, "inputs"), argument(call, 3, "outputs")
    lists = (ast.List, ast.Tuple)
    plain = all(group is None or isinstance(group, lists) for group in (inputs, outputs))
    plain = plain and (inputs is not None or outputs is not None)
    plain = plain and not any(k.arg is None or k.arg.startswith("adj") for k in call.keywords)
    launch = Launch(
        source,
        call,
        inputs if isinstance(inputs, lists) else None,
        outputs if isinstance(outputs, lists) else None,
        plain,
    )
    if any(isinstance(a, ast.Starred) for a in launch.arguments):
        return Launch(source, call, launch.inputs, launch.outputs, False)
    return launch


def numbers_only(node: ast.AST) -> bool:
    """Whether an expression is made of numbers alone."""
    return not any(isinstance(n, (ast.Name, ast.Attribute, ast.Call)) for n in ast.walk(node))
