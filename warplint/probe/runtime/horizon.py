"""Shortens a program that is too long to be measured, without changing what it does in a step.

The numbers that bound the loops around taped launches are looked for in the program's source: a
literal in ``range``, or the literal that a name in it was given (a constant, an attribute, a
default, an argument's default). The largest is divided first; none goes below ``FEWEST`` turns.
What stays connected to such a number (the length of a list of states) shrinks with it, because
the definition changes and not the loop.
"""

from __future__ import annotations

import ast
import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

FEWEST = 3
"""Turns that every loop keeps."""
SMALLEST = 8
"""Bounds below this are left alone."""
_ROUNDING = ("int", "round", "max", "ceil", "floor")
_CHASED = 4
"""How many definitions a bound is followed through: ``frames * substeps`` to both factors."""


@dataclass(frozen=True)
class Literal:
    """A number in the source that is replaced as the program is loaded."""

    file: str
    line: int
    column: int
    name: str
    value: float
    shorter: float

    @property
    def text(self) -> str:
        """What a person should know."""
        return f"{self.name} = {self.shorter:g} instead of {self.value:g} ({self.file}:{self.line})"


@dataclass(frozen=True)
class _Bound:
    name: str
    node: ast.Constant
    file: str

    @property
    def value(self) -> float:
        return float(self.node.value)  # type: ignore[arg-type]


def shorten(
    sources: dict[str, str],
    taped: set[tuple[str, int]],
    backward: set[tuple[str, int]],
    factor: float = 1.0,
    *,
    steps: int | None = None,
) -> list[Literal]:
    """The literals to replace so that the loops around taped launches turn ``factor`` times less.

    ``sources`` maps file names to their text; ``taped`` and ``backward`` are the (file, line)
    frames of recorded launches and of backward calls: a loop around a backward call is the
    training loop and stays as it is. ``steps`` asks for so many turns altogether instead.
    """
    found = []
    # A count says how many turns there are; a duration (divided by a step) only how long they take.
    bounds = _all_bounds(sources, taped, backward)
    counts = _counts(bounds)
    chosen = counts or [b for b in bounds if isinstance(b.node.value, float)]
    fewest = FEWEST
    if steps is not None:
        factor, fewest = math.prod(b.value for b in counts) / steps if counts else 1.0, 1
    for bound in sorted(chosen, key=lambda b: (-b.value, b.file, b.node.lineno)):
        if factor < (1.5 if steps is None else 1.0 + 1.0e-9):
            break
        shorter = bound.value / factor
        if counts:
            shorter = float(max(fewest, round(shorter)))
        factor *= shorter / bound.value
        found.append(
            Literal(bound.file, bound.node.lineno, bound.node.col_offset, bound.name, bound.value, shorter)
        )
    return found


def turns(
    sources: dict[str, str], taped: set[tuple[str, int]], backward: set[tuple[str, int]]
) -> float | None:
    """How often the loops around taped launches turn altogether, if their source says so."""
    counts = _counts(_all_bounds(sources, taped, backward))
    return math.prod(b.value for b in counts) if counts else None


def _counts(bounds: list[_Bound]) -> list[_Bound]:
    return [b for b in bounds if isinstance(b.node.value, int) and b.value >= SMALLEST]


def _all_bounds(
    sources: dict[str, str], taped: set[tuple[str, int]], backward: set[tuple[str, int]]
) -> list[_Bound]:
    trees = _parsed(sources)
    bounds: dict[tuple[str, int, int], _Bound] = {}
    for file, tree in trees.items():
        for loop in _loops(tree, _lines(taped, file), _lines(backward, file)):
            for bound in _bounds(loop.iter, file, trees):
                bounds[(bound.file, bound.node.lineno, bound.node.col_offset)] = bound
    return list(bounds.values())


def _parsed(sources: dict[str, str]) -> dict[str, ast.Module]:
    trees = {}
    for file, text in sources.items():
        with contextlib.suppress(SyntaxError, ValueError):
            trees[file] = ast.parse(text)
    return trees


def launching(sources: dict[str, str]) -> set[tuple[str, int]]:
    """The lines that launch kernels, directly or through functions of these files."""
    return _calling(sources, {"launch", "launch_tiled"})


def going_back(sources: dict[str, str]) -> set[tuple[str, int]]:
    """The lines that call backward, directly or through functions of these files."""
    return _calling(sources, {"backward"})


def _calling(sources: dict[str, str], names: set[str]) -> set[tuple[str, int]]:
    trees = _parsed(sources)
    found: set[tuple[str, int]] = set()
    for _ in range(_CHASED):
        for file, tree in trees.items():
            for function in ast.walk(tree):
                inside = function.body if isinstance(function, ast.FunctionDef) else ()
                for call in (n for statement in inside for n in ast.walk(statement)):
                    if isinstance(call, ast.Call) and _called(call) in names:
                        names = names | {function.name}  # type: ignore[attr-defined]
            found |= {
                (file, node.lineno)
                for node in ast.walk(tree)
                if isinstance(node, ast.Call) and _called(node) in names
            }
    return found


def _lines(frames: set[tuple[str, int]], file: str) -> set[int]:
    return {line for name, line in frames if name == file}


def _loops(tree: ast.Module, taped: set[int], backward: set[int]) -> Iterator[ast.For]:
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and _is_range(node.iter):
            body = range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
            if any(line in body for line in taped) and not any(line in body for line in backward):
                yield node


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


def _bounds(iterable: ast.expr, file: str, trees: dict[str, ast.Module]) -> Iterator[_Bound]:
    assert isinstance(iterable, ast.Call)
    arguments = iterable.args
    stop = arguments[1] if len(arguments) > 1 else arguments[0]
    yield from _numbers(stop, "range", file, trees, _CHASED)


def _numbers(
    node: ast.expr, name: str, file: str, trees: dict[str, ast.Module], depth: int
) -> Iterator[_Bound]:
    """The literals that make an expression large: factors and terms, never divisors."""
    if isinstance(node, ast.Constant):
        if type(node.value) in (int, float) and node.value > 0:  # type: ignore[operator]
            yield _Bound(name, node, file)
    elif isinstance(node, ast.BinOp):
        yield from _numbers(node.left, name, file, trees, depth)
        if isinstance(node.op, (ast.Mult, ast.Add)):
            yield from _numbers(node.right, name, file, trees, depth)
    elif isinstance(node, ast.Call) and node.args and _called(node) in _ROUNDING:
        yield from _numbers(node.args[0], name, file, trees, depth)
    elif isinstance(node, (ast.Name, ast.Attribute)) and depth:
        wanted = node.id if isinstance(node, ast.Name) else node.attr
        everywhere = isinstance(node, ast.Attribute)
        for where, tree in trees.items():
            if where == file or everywhere:
                for value in _definitions(tree, wanted):
                    yield from _numbers(value, wanted, where, trees, depth - 1)


def _called(call: ast.Call) -> str | None:
    return call.func.id if isinstance(call.func, ast.Name) else _named(call.func)


def _definitions(tree: ast.Module, name: str) -> Iterator[ast.expr]:
    """Expressions that a variable, attribute, parameter or command-line option is given."""
    handed = dict(_handed(tree, name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            if any(_named(target) == name for target in node.targets):
                yield node.value
        elif isinstance(node, ast.AnnAssign):
            if _named(node.target) == name and node.value is not None:
                yield node.value
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _defaults(node.args, name)
        elif isinstance(node, ast.Call):
            option = _option(node)
            place = handed.get(_called(node) or "")
            if place is not None and place < len(node.args):
                yield node.args[place]
            for keyword in node.keywords:
                if keyword.arg == name or (keyword.arg == "default" and option == name):
                    yield keyword.value


def _handed(tree: ast.Module, name: str) -> Iterator[tuple[str, int]]:
    """Functions with a parameter of this name, and its place among the arguments of a call."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            if names[:1] in (["self"], ["cls"]):
                names = names[1:]
            if name in names:
                yield node.name, names.index(name)


def _named(target: ast.expr) -> str | None:
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None


def _defaults(arguments: ast.arguments, name: str) -> Iterator[ast.expr]:
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs: list[Any] = list(zip(reversed(positional), reversed(arguments.defaults)))
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults) if d is not None]
    for argument, default in pairs:
        if argument.arg == name:
            yield default


def _option(call: ast.Call) -> str | None:
    """``num_steps`` for ``add_argument("--num-steps", …)``."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in ("add_argument", "option")):
        return None
    for argument in call.args:
        if isinstance(argument, ast.Constant) and str(argument.value).startswith("--"):
            return str(argument.value)[2:].replace("-", "_")
    return None


class Replace(ast.NodeTransformer):
    """Puts the shorter numbers into a file's tree."""

    def __init__(self, literals: Iterable[Literal]) -> None:
        self._at = {(literal.line, literal.column): literal for literal in literals}

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        literal = self._at.get((node.lineno, node.col_offset))
        if literal is None or isinstance(node.value, (str, bytes)) or node.value != literal.value:
            return node
        value = int(literal.shorter) if isinstance(node.value, int) else literal.shorter
        return ast.copy_location(ast.Constant(value), node)
