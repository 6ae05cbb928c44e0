"""WL401, WL402, WL403: custom adjoints, and functions that the backward pass calls again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.arguments import parameters
from warplint.fixes.inplace import in_parentheses
from warplint.fixes.kernels import (
    add_argument,
    add_parameter,
    annotation,
    element_type,
    is_func,
    is_kernel,
    type_of,
)
from warplint.fixes.project import Candidate, Problem
from warplint.fixes.source import Change, Source

__all__ = ["FIXES"]


def accumulated(problem: Problem) -> Iterator[Candidate]:
    """WL401: add to the adjoint of an argument, for others add to it as well."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    function = source.function_of(source.statement(node))
    changes = []
    for statement in ast.walk(function) if function is not None else ():
        if isinstance(statement, ast.Assign) and _is_adjoint(source, statement.targets[0]):
            at = source.text.index("=", source.end(statement.targets[0]))
            changes.append(Change(source.display, at, at, "+"))
    if changes:
        yield problem.project.candidate("add to the adjoint", changes)


def chained(problem: Problem) -> Iterator[Candidate]:
    """WL402: multiply what is added by the incoming adjoint."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    function = statement if isinstance(statement, ast.FunctionDef) else source.function_of(statement)
    if function is None:
        return
    incoming = _incoming(problem, source, function)
    if incoming is None:
        return
    changes = []
    for inner in ast.walk(function):
        if (
            isinstance(inner, ast.AugAssign)
            and _is_adjoint(source, inner.target)
            and incoming not in _flowing(source, function, inner.value)
        ):
            changes.append(source.replace(inner.value, f"{incoming} * {in_parentheses(source, inner.value)}"))
    if changes:
        yield problem.project.candidate("multiply by the incoming adjoint", changes)


def _is_adjoint(source: Source, node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and source.is_warp(node.value, "adjoint")


def _incoming(problem: Problem, source: Source, function: ast.FunctionDef) -> str | None:
    """The incoming adjoint of a custom adjoint: what its function has no parameter for."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and source.is_warp(decorator.func, "func_grad") and decorator.args:
            name = getattr(decorator.args[0], "attr", getattr(decorator.args[0], "id", ""))
            for _, forward in problem.project.functions(name):
                own = [p.arg for p in parameters(function)]
                extra = own[len(parameters(forward)) :]
                return extra[0] if len(extra) == 1 else None
    return None


def _flowing(source: Source, function: ast.FunctionDef, node: ast.expr) -> set[str]:
    """The names that an expression depends on, through the locals of the function."""
    names, queue = set(), list(source.names_in(node))
    while queue:
        name = queue.pop()
        if name not in names:
            names.add(name)
            for inner in ast.walk(function):
                if isinstance(inner, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == name for t in inner.targets
                ):
                    queue += source.names_in(inner.value)
    return names


# -- indices claimed from a counter ------------------------------------------------------------


def replayed(problem: Problem) -> Iterator[Candidate]:
    """WL403: claim the index in a function whose replay reads what the forward pass has stored."""
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    function = source.function_of(statement)
    if function is None or source.warp("func_replay") is None:
        return
    if is_func(source, function):
        yield from _replay_of(problem, source, function)
    elif is_kernel(source, function) and isinstance(statement, ast.Assign):
        yield from _claimed_by_function(problem, source, function, statement)


def _replay_of(problem: Problem, source: Source, function: ast.FunctionDef) -> Iterator[Candidate]:
    """The function stores the index already: add the function that reads it."""
    last = function.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Name):
        return
    for store in function.body:
        if (
            isinstance(store, ast.Assign)
            and isinstance(store.targets[0], ast.Subscript)
            and isinstance(store.value, ast.Name)
            and store.value.id == last.value.id
        ):
            indent, unit = source.indent(function), source.unit(function)
            name = source.fresh(function, f"replay_{function.name}")
            given = ", ".join(source.segment(p) for p in parameters(function))
            lines = [
                "",
                "",
                f"{indent}@{source.warp('func_replay')}({function.name})",
                f"{indent}def {name}({given}):",
                f"{indent}{unit}return {source.segment(store.targets[0])}",
            ]
            changes = [source.insert_after(function, *lines, indent="")]
            if function.returns is not None:
                # A function with a replay takes the type from what it returns.
                arrow = source.text.rindex("->", 0, source.start(function.returns))
                start = len(source.text[:arrow].rstrip())
                bare = Change(source.display, start, source.end(function.returns), "")
                yield problem.project.candidate(
                    "read the claimed index again in the replay", [*changes, bare]
                )
            yield problem.project.candidate("read the claimed index again in the replay", changes)


def _claimed_by_function(
    problem: Problem, source: Source, kernel: ast.FunctionDef, statement: ast.Assign
) -> Iterator[Candidate]:
    target, call = statement.targets[0], statement.value
    claims = isinstance(call, ast.Call) and source.is_warp(call.func, "atomic_add", "atomic_sub")
    if not (isinstance(target, ast.Name) and isinstance(call, ast.Call) and claims):
        return
    if not all(isinstance(a, (ast.Name, ast.Constant)) for a in call.args):
        return
    thread = _thread_index(source, kernel)
    if thread is None:
        return
    slot = target.id
    stored = _stored_index(source, kernel, slot, statement)
    changes: list[Change] = []
    if stored is not None:
        array, index, store = stored
        changes.append(source.delete(store))
    else:
        array, index = source.fresh(kernel, f"{slot}s"), thread
        more = _room(problem, source, kernel, array)
        if more is None:
            return
        changes += more
    names = [a.id for a in call.args if isinstance(a, ast.Name) and _is_local(kernel, a.id)]
    given = dict.fromkeys([*names, array, index])
    types = []
    for name in given:
        kind = annotation(source, kernel, name) or type_of(source, kernel, ast.Name(name, ast.Load()))
        types.append(kind or (_int_array(source, call, kernel) if name == array else None))
    if not all(types):
        return
    indent, unit = source.indent(kernel), source.unit(kernel)
    typed = ", ".join(f"{n}: {t}" for n, t in zip(given, types, strict=True))
    claim, replay = source.fresh(kernel, f"take_{slot}"), source.fresh(kernel, f"replay_take_{slot}")
    lines = [
        f"@{source.warp('func')}",
        f"def {claim}({typed}):",
        f"{unit}{slot} = {source.segment(call)}",
        f"{unit}{array}[{index}] = {slot}",
        f"{unit}return {slot}",
        "",
        "",
        f"@{source.warp('func_replay')}({claim})",
        f"def {replay}({typed}):",
        f"{unit}return {array}[{index}]",
        "",
        "",
    ]
    text = "".join(f"{indent}{line}{source.newline}" if line else source.newline for line in lines)
    begin = source.starts[source.line_of(source.start(kernel)) - 1]
    changes += [
        Change(source.display, begin, begin, text),
        source.replace(call, f"{claim}({', '.join(given)})"),
    ]
    yield problem.project.candidate("claim the index in a function with a replay", changes)


def _is_local(kernel: ast.FunctionDef, name: str) -> bool:
    stored = {n.id for n in ast.walk(kernel) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return name in stored or any(p.arg == name for p in parameters(kernel))


def _thread_index(source: Source, kernel: ast.FunctionDef) -> str | None:
    for node in ast.walk(kernel):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and source.is_warp(node.value.func, "tid")
        ):
            return node.targets[0].id if isinstance(node.targets[0], ast.Name) else None
    return None


def _stored_index(
    source: Source, kernel: ast.FunctionDef, slot: str, statement: ast.stmt
) -> tuple[str, str, ast.stmt] | None:
    """``slots[n] = slot`` beside the claim: the kernel keeps the index already."""
    for other in source.block_of(statement):
        if (
            isinstance(other, ast.Assign)
            and isinstance(other.targets[0], ast.Subscript)
            and isinstance(other.value, ast.Name)
            and other.value.id == slot
            and isinstance(other.targets[0].value, ast.Name)
            and isinstance(other.targets[0].slice, ast.Name)
            and element_type(source, kernel, other.targets[0].value.id) in ("int", "wp.int32", "int32")
        ):
            return other.targets[0].value.id, other.targets[0].slice.id, other
    return None


def _int_array(source: Source, call: ast.Call, kernel: ast.FunctionDef) -> str | None:
    counter = call.args[0]
    return annotation(source, kernel, counter.id) if isinstance(counter, ast.Name) else None


def _room(problem: Problem, source: Source, kernel: ast.FunctionDef, array: str) -> list[Change] | None:
    """One more array, with an element for each thread, from the launches to the kernel."""
    launches = problem.project.launches(kernel)
    counter = next(
        (p for p in parameters(kernel) if "int" in (element_type(source, kernel, p.arg) or "")), None
    )
    if not launches or counter is None or counter.annotation is None:
        return None
    counts = {len(launch.inputs.elts) if launch.inputs else 0 for launch in launches}
    if len(counts) != 1 or not all(launch.plain and launch.dim is not None for launch in launches):
        return None
    after = counts.pop() - 1
    if after < 0:
        return None
    changes = [add_parameter(source, kernel, after, f"{array}: {source.segment(counter.annotation)}")]
    for launch in launches:
        zeros, dim = launch.source.warp("zeros"), launch.dim
        if zeros is None or dim is None:
            return None
        changes.append(add_argument(launch, f"{zeros}({launch.source.segment(dim)}, dtype=int)"))
    return changes


FIXES = {"WL401": accumulated, "WL402": chained, "WL403": replayed}
