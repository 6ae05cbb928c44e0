"""WL208, WL501, WL506: what a backward pass begins with, and what the one before it left."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.project import Candidate, Problem, argument, method_calls
from warplint.fixes.source import Source

__all__ = ["FIXES"]


def zeroed(problem: Problem) -> Iterator[Candidate]:
    """WL501: the gradients are emptied before the next pass adds to them."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    title = "zero the gradients between two passes"
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and _in_adjoint_launch(source, node):
        # A manual adjoint launch: the array it adds to.
        text = source.segment(node)
        first = _first_of_block(source, statement, text)
        yield problem.project.candidate(title, [source.insert_before(first, f"{text}.zero_()")])
        return
    call = next(method_calls(statement, "backward"), None)
    if call is None or not isinstance(call.func, ast.Attribute):
        return
    tape = source.segment(call.func.value)
    for place in _after_use(source, statement):
        yield problem.project.candidate(title, [source.insert_after(place, f"{tape}.zero()")])
    for name in problem.quoted[:1]:
        if name.replace(".", "").replace("_", "").isalnum():
            yield problem.project.candidate(title, [source.insert_before(statement, f"{name}.grad.zero_()")])
    # A tape that has gone back before knows its gradients already.
    yield problem.project.candidate(title, [source.insert_before(statement, f"{tape}.zero()")])


def _after_use(source: Source, backward: ast.stmt) -> Iterator[ast.stmt]:
    """Where the gradients have been used: the last statement that speaks of them, or the last of all."""
    block = source.block_of(backward)
    later = block[block.index(backward) :] if backward in block else [backward]
    while len(later) > 1 and isinstance(later[-1], (ast.Return, ast.Continue, ast.Break)):
        later.pop()
    used = [s for s in later if ".grad" in source.segment(s) or ".step(" in source.segment(s)]
    yield from dict.fromkeys((*used[-1:], later[-1]))


def _in_adjoint_launch(source: Source, node: ast.AST) -> bool:
    return any(
        isinstance(call, ast.Call) and any(k.arg == "adjoint" for k in call.keywords)
        for call in source.enclosing(node, ast.Call)
    )


def _first_of_block(source: Source, statement: ast.stmt, text: str) -> ast.stmt:
    """The first adjoint launch of the block that adds to this array: one reset for all of them."""
    for other in source.block_of(statement):
        for call in ast.walk(other):
            if isinstance(call, ast.Call) and any(k.arg == "adjoint" for k in call.keywords):
                given = argument(call, 4, "adj_inputs")
                if given is not None and text in source.segment(given):
                    return other
        if other is statement:
            break
    return statement


def emptied(problem: Problem) -> Iterator[Candidate]:
    """WL506: the tape is emptied, not only its gradients, or made anew."""
    project = problem.project
    title = "empty the tape between two passes"
    places = [problem.result.location, *(site.location for site in problem.result.related)]
    found = [pair for pair in map(problem.node, places) if pair is not None]
    tapes = {name for source, node in found for name in _tapes(source, source.statement(node))}
    for source in {id(s): s for s, _ in found}.values():
        for call in source.nodes:
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "zero"
                and source.segment(call.func.value) in tapes
            ):
                receiver = source.segment(call.func.value)
                yield project.candidate(title, [source.replace(call.func, f"{receiver}.reset")])
    for source in {id(s): s for s, _ in found}.values():
        yield from _moved_out(problem, source)
    for source, node in found:
        statement = source.statement(node)
        make = source.warp("Tape")
        for name in _entered(source, statement):
            if make:
                change = [source.insert_before(statement, f"{name} = {make}()")]
                yield project.candidate("make a new tape for every pass", change)
            yield project.candidate(title, [source.insert_before(statement, f"{name}.reset()")])


def _moved_out(problem: Problem, source: Source) -> Iterator[Candidate]:
    """A backward pass inside ``with tape:`` runs behind it: it must not be recorded itself."""
    for call in method_calls(source.tree, "backward"):
        statement = source.statement(call)
        around = source.parents[statement]
        if not (isinstance(around, ast.With) and source.owns_lines(statement) and len(around.body) > 1):
            continue
        behind = around.body[around.body.index(statement) :]
        if all(source.owns_lines(s) for s in behind):
            lines = [line for s in behind for line in source.lines_of(s, source.indent(around))]
            changes = [source.delete(s) for s in behind]
            changes.append(source.insert_after(around, *lines, indent=""))
            yield problem.project.candidate("run the backward pass behind the recording", changes)


def _tapes(source: Source, statement: ast.stmt) -> Iterator[str]:
    """What the tapes that a statement makes or enters are called."""
    if isinstance(statement, ast.Assign):
        yield from (source.segment(t) for t in statement.targets)
    yield from _entered(source, statement)
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "backward":
            yield source.segment(node.func.value)  # type: ignore[attr-defined]


def _entered(source: Source, statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.With):
        for item in statement.items:
            if isinstance(item.context_expr, (ast.Name, ast.Attribute)):
                yield source.segment(item.context_expr)


def given_loss(problem: Problem) -> Iterator[Candidate]:
    """WL208: the backward pass begins at the loss."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    calls = method_calls(source.statement(node), "backward")
    call = next((c for c in calls if not c.args and not c.keywords), None)
    if call is None:
        return
    end = source.end(call) - 1
    named = sorted(_losses(source, call), key=lambda text: text.rpartition(".")[2] != "loss")
    for text in dict.fromkeys((*problem.quoted, *named)):
        if text.replace(".", "").replace("_", "").isalnum() and "loss" in text.lower():
            change = source.replace(call, f"{source.text[source.start(call) : end]}{text})")
            yield problem.project.candidate("begin the backward pass at the loss", [change])


def _losses(source: Source, call: ast.Call) -> Iterator[str]:
    """Expressions of this function, or of its class, that are called a loss."""
    function = source.function_of(call)
    around: list[ast.AST] = [source.scope_of(call), *source.enclosing(call, ast.ClassDef)]
    own = function is not None and function.args.args[:1]
    for scope in around:
        for node in ast.walk(scope):
            if isinstance(node, (ast.Name, ast.Attribute)) and "loss" in source.segment(node).lower():
                text = source.segment(node)
                if not text.startswith("self.") or own:
                    yield text


def once(problem: Problem) -> Iterator[Candidate]:
    """WL505: the second of two equal launches is left out."""
    found = problem.node()
    if found is not None:
        source, node = found
        statement = source.statement(node)
        if isinstance(statement, ast.Expr):
            yield problem.project.candidate("launch it once", [source.delete(statement)])


FIXES = {"WL208": given_loss, "WL501": zeroed, "WL505": once, "WL506": emptied}
