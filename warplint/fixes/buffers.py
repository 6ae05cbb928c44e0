"""WL101 to WL105: a buffer is written again while the tape still needs what it held.

Two ways out, each local to a line or two. Whoever writes gets a fresh array (the swap, the reset,
the alias or the output is rebound to one), or whoever reads gets a copy of its own, which the tape
records.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from warplint.fixes.arguments import assignable, before, kernel_of, launch_in, uses
from warplint.fixes.project import Candidate, Launch, Problem, argument
from warplint.fixes.source import Change, Source
from warplint.model import Location

__all__ = ["FIXES", "reader_copies"]


def states(problem: Problem) -> Iterator[Candidate]:
    """WL101, WL103, WL104: an array for each step."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    yield from _swapped(problem, source, statement)
    yield from _aliased(problem, source, statement)
    yield from _repeated(problem, source, statement)
    yield from _fresh_outputs(problem)
    yield from _rebound(problem, source, node)
    yield from reader_copies(problem)


def resets(problem: Problem) -> Iterator[Candidate]:
    """WL105: instead of resetting an array, take a new one."""
    found = problem.node()
    if found is not None:
        yield from _rebound(problem, *found)
    yield from reader_copies(problem)


def copies(problem: Problem) -> Iterator[Candidate]:
    """WL102: instead of copying onto an array, let the name stand for a new one."""
    found = problem.node()
    if found is None:
        return
    yield from _rebound(problem, *found)
    yield from reader_copies(problem)


# -- the host statement that lets two steps share an array -------------------------------------


def _swapped(problem: Problem, source: Source, statement: ast.stmt) -> Iterator[Candidate]:
    """``a, b = b, a``: whatever is written next becomes a fresh array."""
    zeros = source.warp("zeros_like")
    if zeros is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    targets, values = statement.targets[0], statement.value
    if not (isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple)):
        return
    pairs = list(zip(targets.elts, values.elts, strict=False))
    texts = [source.segment(t) for t in targets.elts]
    if len(targets.elts) != len(values.elts) or {source.segment(v) for v in values.elts} != set(texts):
        return
    written = _written_near(problem)
    chosen = [v for t, v in pairs if source.segment(t) in written and source.segment(t) != source.segment(v)]
    if not chosen and any(w.startswith((f"{t}.", f"{t}[")) for w in written for t in texts):
        return  # what is swapped are objects that hold the arrays
    # Of buffers that rotate, the one that is to be written next is the last in the row.
    for group in [chosen] if chosen else [[v] for _, v in reversed(pairs)]:
        changes = [source.replace(v, f"{zeros}({source.segment(v)})") for v in group]
        yield problem.project.candidate("write each step into a fresh array", changes)


def _written_near(problem: Problem) -> set[str]:
    """The expressions that the overwriting launches write to."""
    found: set[str] = set()
    for source, launch in _launches(problem, "overwritten here"):
        found |= {source.segment(a) for a in _written(problem, launch)}
    return found


def _aliased(problem: Problem, source: Source, statement: ast.stmt) -> Iterator[Candidate]:
    """``new = old``: the second name gets an array of its own."""
    zeros = source.warp("zeros_like")
    if zeros is None or not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    values = list(value.elts) if several and isinstance(value, ast.Tuple) else [value]
    targets = list(target.elts) if several and isinstance(target, ast.Tuple) else [target]
    if {source.segment(t) for t in targets} == {source.segment(v) for v in values}:
        return
    if all(isinstance(v, (ast.Name, ast.Attribute, ast.Subscript)) for v in values):
        for make, title in ((zeros, "an array of its own"), (source.warp("clone"), "a copy of its own")):
            changes = [source.replace(v, f"{make}({source.segment(v)})") for v in values]
            yield problem.project.candidate(f"give the second name {title}", changes)


def _repeated(problem: Problem, source: Source, statement: ast.stmt) -> Iterator[Candidate]:
    """``[wp.zeros(n)] * k``: one array for each place of the list."""
    changes, everywhere = [], []
    for other in ast.walk(source.scope_of(statement)):
        if not isinstance(other, ast.BinOp) or not isinstance(other.op, ast.Mult):
            continue
        items, count = (
            (other.left, other.right) if isinstance(other.left, ast.List) else (other.right, other.left)
        )
        if not (isinstance(items, ast.List) and len(items.elts) == 1):
            continue
        element, copy = items.elts[0], source.warp("clone")
        made = source.segment(element)
        if isinstance(element, (ast.Name, ast.Attribute)) and copy:
            made = f"{copy}({made})"
        elif not isinstance(element, ast.Call):
            continue
        number = source.segment(count)
        inner = f"[{made} for _ in range({number})]"
        change = source.replace(other, inner)
        everywhere.append(change)
        if source.statement(other) is statement:
            changes.append(change)
    if changes:
        yield problem.project.candidate("make an array for each place of the list", changes)
        yield problem.project.candidate("make an array for each place of the lists", everywhere)


# -- fresh arrays for what is written ----------------------------------------------------------


def _fresh_outputs(problem: Problem) -> Iterator[Candidate]:
    named = _named(problem)
    for source, launch in _launches(problem, "overwritten here"):
        statement = source.statement(launch.call)
        written = _written(problem, launch)
        chosen = [a for a in written if _last(source, a) in named]
        evidence = problem.result.evidence
        measured = evidence is not None and evidence.counterfactual is not None
        # Without a run it is not known which of them matter.
        groups = [chosen, written] if measured else [written, chosen]
        for group in groups if chosen != written else groups[:1]:
            changes: list[Change] = []
            for node in group:
                make = _maker(problem, launch, node)
                ways = list(before(source, statement, node, make, problem.project)) if make else []
                changes += ways[0] if ways else []
            if changes:
                yield problem.project.candidate("write each step into a fresh array", changes)


def _maker(problem: Problem, launch: Launch, node: ast.expr) -> str | None:
    """How a fresh array for an argument is made: a copy if the kernel also reads it."""
    kernel = kernel_of(launch, problem.project)
    name = "zeros_like"
    if kernel is not None:
        given = uses(kernel[1], kernel[0])
        position = launch.arguments.index(node)
        if position < len(given):
            use = list(given.values())[position]
            name = "clone" if use.read or use.added else name
    spelled = launch.source.warp(name)
    return f"{spelled}({{}})" if spelled else None


def _written(problem: Problem, launch: Launch) -> list[ast.expr]:
    """The arguments that a launch stores into, as far as its kernel or its outputs say."""
    kernel = kernel_of(launch, problem.project)
    if kernel is None:
        return list(launch.outputs.elts) if launch.outputs else []
    given = list(uses(kernel[1], kernel[0]).values())
    return [a for a, use in zip(launch.arguments, given, strict=False) if use.stored]


# -- copies for who reads ----------------------------------------------------------------------


def reader_copies(problem: Problem) -> Iterator[Candidate]:
    """The launch that needs the value reads a recorded copy of it."""
    named = _named(problem)
    for source, launch in _launches(problem, "read here", "written on the tape before"):
        clone = source.warp("clone")
        kernel = kernel_of(launch, problem.project)
        if clone is None or kernel is None:
            continue
        given = list(uses(kernel[1], kernel[0]).values())
        read = [
            a
            for a, use in zip(launch.arguments, given, strict=False)
            if use.read and not use.stored and not use.added and assignable(a)
        ]
        chosen = [a for a in read if _last(source, a) in named]
        onto = {source.segment(a) for a in _written(problem, launch)}
        both = [a for a in read if source.segment(a) in onto]
        for group in (g for g in (chosen, both) if g):
            changes = [source.replace(a, f"{clone}({source.segment(a)})") for a in group]
            yield problem.project.candidate("let the launch that needs the value read a copy", changes)


def _launches(problem: Problem, *words: str) -> Iterator[tuple[Source, Launch]]:
    """Launches at the places that a result tells, the result's own place last."""
    seen: set[ast.AST] = set()
    for place in (*problem.related(*words), problem.result.location):
        found = problem.node(place)
        if found is None:
            continue
        source, node = found
        statement = source.statement(node)
        if isinstance(statement, (ast.Expr, ast.Assign)) and statement not in seen:
            seen.add(statement)
            launch = launch_in(source, statement)
            if launch is not None and launch.plain:
                yield source, launch


def _named(problem: Problem) -> set[str]:
    """The last parts of the names of the buffers that a result speaks of."""
    evidence = problem.result.evidence
    told = problem.quoted[:1]
    if evidence and evidence.counterfactual:
        told += evidence.counterfactual.removed.partition(" by ")[0].split("`")[1::2]
    return {_part(name) for name in told}


def _part(text: str) -> str:
    return re.sub(r"\[.*", "", text).rpartition(".")[2] if not text.endswith("]") else _element(text)


def _element(text: str) -> str:
    return _part(text[: text.index("[")]) if "[" in text else text


def _last(source: Source, node: ast.expr) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else source.segment(node)


# -- resets and copies -------------------------------------------------------------------------


def _rebound(problem: Problem, source: Source, node: ast.AST) -> Iterator[Candidate]:
    """``x.zero_()``, ``x.fill_(v)``, ``x.assign(v)``, ``wp.copy(x, y)``: ``x`` becomes a new array."""
    statement = source.statement(node)
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return
    for target, make in _meanings(source, call):
        text = source.segment(target)
        if assignable(target):
            change = source.replace(statement, f"{text} = {make.format(text)}")
            yield problem.project.candidate("take a new array instead of overwriting this one", [change])
            ways = before(source, statement, target, make, problem.project)
            if isinstance(target, ast.Name) and "{" in make:
                for changes in ways:
                    if all(change.start != source.start(statement) for change in changes):
                        yield problem.project.candidate("hand in a new array each time", changes)


def _meanings(source: Source, call: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    """What is overwritten, and expressions for a new array with the same contents."""
    function = call.func
    if source.is_warp(function, "copy"):
        onto, what = argument(call, 0, "dest"), argument(call, 1, "src")
        clone = source.warp("clone")
        if onto is not None and what is not None and len(call.args) + len(call.keywords) == 2 and clone:
            yield onto, f"{clone}({_escaped(source, what)})"
            yield onto, f"{clone}({_escaped(source, what)}, requires_grad=True)"
        return
    if not isinstance(function, ast.Attribute):
        return
    onto = function.value
    if function.attr == "zero_" and source.warp("zeros_like"):
        yield onto, f"{source.warp('zeros_like')}({{0}})"
    elif function.attr == "fill_" and len(call.args) == 1 and source.warp("full_like"):
        yield onto, f"{source.warp('full_like')}({{0}}, {_escaped(source, call.args[0])})"
    elif function.attr == "assign" and len(call.args) == 1:
        value = _escaped(source, call.args[0])
        if source.warp("clone"):
            yield onto, f"{source.warp('clone')}({value})"
        if source.warp("array"):
            yield onto, f"{source.warp('array')}({value}, dtype={{0}}.dtype, requires_grad=True)"


def _escaped(source: Source, node: ast.AST) -> str:
    return source.segment(node).replace("{", "{{").replace("}", "}}")


def at(source: Source, node: ast.AST) -> Location:
    return source.place(Change(source.display, source.start(node), source.end(node), ""))


FIXES = {"WL101": states, "WL103": states, "WL104": states, "WL105": resets, "WL102": copies}
