"""WL106, WL107, WL203, WL502: a statement stands on the wrong side of the tape or of its backward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.buffers import reader_copies
from warplint.fixes.project import Candidate, Problem, Project, method_calls
from warplint.fixes.source import Change, Source

__all__ = ["FIXES", "backward_calls"]


def after_backward(problem: Problem) -> Iterator[Candidate]:
    """WL106, WL107: what overwrites can wait until the backward pass is over."""
    found = problem.node()
    backward = next(problem.related("backward pass runs"), None)
    if found is not None and backward is not None:
        source, node = found
        target = problem.node(backward)
        if target is not None:
            yield from _later(problem.project, source, source.statement(node), target[0], target[1])
    yield from reader_copies(problem)


def _later(
    project: Project, source: Source, statement: ast.stmt, other: Source, backward: ast.AST
) -> Iterator[Candidate]:
    """Move a statement, or the one in the same block that leads to it, behind ``backward``."""
    end = other.statement(backward)
    title = "do it after the backward pass"
    for moved in _in_block_of(project, source, statement, other, end):
        change = _move_behind(other, moved, end)
        if change:
            yield project.candidate(title, change)
    yield from _carried_over(project, source, statement, other, end, title)
    # Or the other way round: the backward pass comes first.
    for first in _in_block_of(project, source, statement, other, end):
        block = other.block_of(end)
        if first in block and other.owns_lines(end) and other.owns_lines(first):
            lines = other.lines_of(end, other.indent(first))
            yield project.candidate(
                "run the backward pass before it",
                [other.insert_before(first, *lines, indent=""), other.delete(end)],
            )


def _carried_over(
    project: Project, source: Source, statement: ast.stmt, other: Source, end: ast.stmt, title: str
) -> Iterator[Candidate]:
    """Move a statement out of a method, behind ``backward`` in another method of the same class."""
    classes = [next(s.enclosing(n, ast.ClassDef), None) for s, n in ((source, statement), (other, end))]
    function = source.function_of(statement)
    if source is not other or function is None or classes[0] is None or classes[0] is not classes[1]:
        return
    if function is other.function_of(end) or not (source.owns_lines(statement) and other.owns_lines(end)):
        return
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    local = stored | {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
    if not (source.names_in(statement) & local) - {"self"}:
        lines = source.lines_of(statement, other.indent(end))
        placed = other.insert_after(end, *lines, indent="")
        yield project.candidate(title, [source.delete(statement), placed])


def _in_block_of(
    project: Project, source: Source, statement: ast.stmt, other: Source, end: ast.stmt
) -> Iterator[ast.stmt]:
    """Statements in front of ``end``, in its block or in a ``with`` of it, that are or call this one."""
    block = other.block_of(end)
    before = block[: block.index(end)] if end in block else []
    inner = [s for b in before if isinstance(b, ast.With) for s in b.body]
    loops = [s for b in (*before, *inner) if isinstance(b, (ast.For, ast.If)) for s in b.body]
    if source is other and statement in [*before, *inner, *loops]:
        yield statement
        return
    leading = _leading_to(project, source.function_of(statement))
    for candidate in reversed([*before, *inner]):
        if leading & _called(candidate) and not isinstance(candidate, ast.With):
            yield candidate
            return


def _called(node: ast.AST) -> set[str]:
    """The simple names of what is called below a node."""
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return {getattr(f, "attr", getattr(f, "id", "")) for f in calls}


def _leading_to(project: Project, function: ast.FunctionDef | None) -> set[str]:
    """A function and those that call it, over a few steps, by name."""
    names: set[str] = set()
    queue = [function] if function is not None else []
    while queue and len(names) < 8:
        current = queue.pop(0)
        if current.name not in names:
            names.add(current.name)
            for caller, call in project.calls(current) or []:
                around = caller.function_of(call)
                queue += [around] if around is not None else []
    return names


def _move_behind(source: Source, statement: ast.stmt, end: ast.stmt) -> list[Change]:
    if not (source.owns_lines(statement) and source.owns_lines(end)):
        return []
    lines = source.lines_of(statement, source.indent(end))
    return [source.delete(statement), source.insert_after(end, *lines, indent="")]


def on_the_tape(problem: Problem) -> Iterator[Candidate]:
    """WL203: record the launch."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    for call in ast.walk(statement):
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "record_tape":
                    yield problem.project.candidate(
                        "record the launch", [source.replace(keyword.value, "True")]
                    )
                    return
    for owner, moved in _callers(problem.project, source, statement):
        block = owner.block_of(moved)
        place = block.index(moved) if moved in block else 0
        for tape in block:
            if not (isinstance(tape, ast.With) and _is_tape(owner, tape)):
                continue
            if not (owner.owns_lines(moved) and owner.owns_lines(tape.body[0])):
                continue
            lines = owner.lines_of(moved, owner.indent(tape.body[0]))
            if block.index(tape) > place:
                placed = owner.insert_before(tape.body[0], *lines, indent="")
            else:
                placed = owner.insert_after(tape.body[-1], *lines, indent="")
            yield problem.project.candidate("record it on the tape", [owner.delete(moved), placed])


def _is_tape(source: Source, node: ast.With) -> bool:
    for item in node.items:
        expression = item.context_expr
        if isinstance(expression, ast.Call) and source.is_warp(expression.func, "Tape"):
            return True
        if isinstance(expression, (ast.Name, ast.Attribute)) and "tape" in source.segment(expression).lower():
            return True
    return False


def _callers(project: Project, source: Source, statement: ast.stmt) -> Iterator[tuple[Source, ast.stmt]]:
    yield source, statement
    function = source.function_of(statement)
    calls = project.calls(function) if function is not None else None
    for caller, call in calls or []:
        yield caller, caller.statement(call)


def stale(problem: Problem) -> Iterator[Candidate]:
    """WL502: take a copy, or read the gradient when it is there."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    for call in method_calls(node if isinstance(node, ast.Call) else statement, "numpy"):
        if _ends_chain(source, call):
            at = source.end(call)
            copied = Change(source.display, at, at, ".copy()")
            yield problem.project.candidate("take a copy of the gradient", [copied])
    for place in problem.related("tape.zero", "tape.reset", "reset", "zero"):
        other = problem.node(place)
        if other is not None:
            yield from _swapped(problem.project, source, statement, other[0], other[0].statement(other[1]))
    for where, call in backward_calls(problem.project):
        backward = where.statement(call)
        for moved in _in_block_of(problem.project, source, statement, where, backward):
            change = _move_behind(where, moved, backward)
            if change:
                yield problem.project.candidate("read the gradient after the backward pass", change)


def _swapped(
    project: Project, source: Source, read: ast.stmt, other: Source, reset: ast.stmt
) -> Iterator[Candidate]:
    """The reset comes after the read, or after the call that leads to it."""
    block = other.block_of(reset)
    later = block[block.index(reset) + 1 :] if reset in block else []
    leading = _leading_to(project, source.function_of(read))
    for statement in later:
        if statement is read or leading & _called(statement):
            change = _move_behind(other, reset, statement)
            if change:
                yield project.candidate("reset the gradient after it was used", change)
            return


def _ends_chain(source: Source, call: ast.Call) -> bool:
    """Whether what ``numpy()`` returns is used as it is, and no copy of it is made on the spot."""
    parent = source.parents[call]
    return not (isinstance(parent, ast.Attribute) and parent.attr == "copy")


def backward_calls(project: Project) -> Iterator[tuple[Source, ast.Call]]:
    for source in project.sources("backward"):
        for call in method_calls(source.tree, "backward"):
            yield source, call


FIXES = {"WL106": after_backward, "WL107": after_backward, "WL203": on_the_tape, "WL502": stale}
