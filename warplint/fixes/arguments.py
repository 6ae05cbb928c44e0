"""Which arguments of a launch its kernel reads and writes, and where they come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.project import Launch, Project, _launch
from warplint.fixes.source import Change, Source

__all__ = ["Use", "assignable", "before", "launch_in", "parameters", "uses"]


class Use:
    """What a kernel does with one of its parameters."""

    def __init__(self) -> None:
        self.read = self.stored = self.added = False


def parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args]


def uses(kernel: ast.FunctionDef, source: Source) -> dict[str, Use]:
    """How each parameter of a kernel is used in its own body."""
    found = {p.arg: Use() for p in parameters(kernel)}
    for node in ast.walk(kernel):
        if isinstance(node, ast.Subscript):
            use = found.get(_base(node) or "")
            if use is None:
                continue
            if isinstance(node.ctx, ast.Store):
                parent = source.parents[node]
                if isinstance(parent, ast.AugAssign):
                    adds = isinstance(parent.op, (ast.Add, ast.Sub))
                    use.added = use.added or adds
                    use.stored = use.stored or not adds
                    use.read = use.read or not adds
                else:
                    use.stored = True
            else:
                use.read = True
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            for argument in node.args:
                use = found.get(argument.id) if isinstance(argument, ast.Name) else None
                if use is None or (isinstance(node.func, ast.Attribute) and node.func.attr == "tid"):
                    continue
                if name.startswith(("atomic_", "tile_atomic_")):
                    use.added = True
                elif name == "tile_store":
                    use.stored = True
                else:  # a function of the user's, or a built-in that reads
                    use.read = True
    return found


def _base(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def launch_in(source: Source, statement: ast.AST) -> Launch | None:
    """The launch that a statement consists of."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and source.is_warp(node.func, "launch", "launch_tiled"):
            return _launch(source, node)
    return None


def kernel_of(launch: Launch, project: Project) -> tuple[Source, ast.FunctionDef] | None:
    """The kernel that is launched, where its name says which."""
    from warplint.fixes.project import argument

    node = argument(launch.call, 0, "kernel")
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    found = project.functions(name)
    here = [pair for pair in found if pair[0] is launch.source]
    return here[0] if here else found[0] if len(found) == 1 else None


def assignable(node: ast.expr) -> bool:
    """Whether ``X = ...`` can be written for an expression: a name, an attribute, an element."""
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Subscript):
        return not isinstance(node.slice, ast.Slice) and assignable(node.value)
    return isinstance(node, ast.Attribute) and assignable(node.value) and node.attr != "grad"


def before(
    source: Source, statement: ast.stmt, node: ast.expr, make: str, project: Project, depth: int = 2
) -> Iterator[list[Change]]:
    """Ways to give an expression a fresh array in front of a statement.

    ``make`` is the expression with ``{}`` for the old array. A parameter is given one where its
    function is called, for the caller would not see another.
    """
    if not assignable(node):
        return
    text = source.segment(node)
    function = source.function_of(statement)
    own = isinstance(node, ast.Name) and function is not None
    given = [p.arg for p in parameters(function)] if own and function is not None else []
    if not (own and text in given):
        yield [source.insert_before(statement, f"{text} = {make.format(text)}")]
        return
    assert function is not None
    calls = project.calls(function) if depth else None
    if not calls:
        return
    position = given.index(text)
    ways: list[list[list[Change]]] = []
    for caller, call in calls:
        shift = 1 if isinstance(call.func, ast.Attribute) and given[0] in ("self", "cls") else 0
        passed: ast.expr | None = next((k.value for k in call.keywords if k.arg == text), None)
        if passed is None and position - shift < len(call.args):
            passed = call.args[position - shift]
        if passed is None or isinstance(passed, ast.Starred):
            return
        ways.append(list(before(caller, caller.statement(call), passed, make, project, depth - 1)))
    if all(ways):
        yield [change for way in ways for change in way[0]]
