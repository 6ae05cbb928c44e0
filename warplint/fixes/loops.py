"""WL303: a value that a loop with a runtime bound computes is needed by the backward pass.

The backward pass does not run such a loop again, except inside a function that returns what the
loop computes. Three ways out: the number of turns becomes a constant, so that the loop is unrolled; the
function is split behind the loop; the loop becomes a function.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.arguments import parameters
from warplint.fixes.kernels import is_func, is_kernel, module_number, type_of
from warplint.fixes.project import Candidate, Problem
from warplint.fixes.source import Change, Source

__all__ = ["FIXES"]

_UNROLLED = 16
_MOST_UNROLLED = 64


def dynamic_loop(problem: Problem) -> Iterator[Candidate]:
    found = problem.node()
    if found is None:
        return
    source, node = found
    function = source.function_of(source.statement(node))
    if function is None or not (is_kernel(source, function) or is_func(source, function)):
        return
    lines = {place.line for place in problem.related("loop")}
    loops = [n for n in ast.walk(function) if isinstance(n, ast.For)]
    for loop in [n for n in loops if n.lineno in lines] or loops:
        yield from _constant_bound(problem, source, function, loop)
        yield from _split(problem, source, function, loop)
        yield from _extracted(problem, source, function, loop)


# -- a constant number of turns ----------------------------------------------------------------


def _constant_bound(
    problem: Problem, source: Source, function: ast.FunctionDef, loop: ast.For
) -> Iterator[Candidate]:
    bounds = _bounds(source, loop)
    if bounds is None:
        return
    changes, most = [], 0
    for bound in bounds:
        text = _constant(problem, source, function, bound, 3)
        number = _number(source, text) if text is not None else None
        if text is None or number is None:
            return
        most = max(most, number)
        if text != source.segment(bound):
            changes.append(source.replace(bound, text))
    if most > _MOST_UNROLLED:
        return
    if most > _UNROLLED:
        more = _more_unrolling(source, function, most)
        if more is None:
            return
        changes.append(more)
    if changes:
        yield problem.project.candidate("give the loop a constant bound, so that it is unrolled", changes)


def _bounds(source: Source, loop: ast.For) -> list[ast.expr] | None:
    call = loop.iter
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range":
        return list(call.args)
    return None


def _constant(
    problem: Problem, source: Source, function: ast.FunctionDef, node: ast.expr, depth: int
) -> str | None:
    """The constant that an expression of a kernel always is, as this file can write it."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value)
    if not isinstance(node, ast.Name) or depth == 0:
        return None
    given = [p.arg for p in parameters(function)]
    if node.id not in given:
        local = node.id in _stored(function)
        return node.id if not local and module_number(source, node.id) is not None else None
    position, texts = given.index(node.id), set()
    if is_kernel(source, function):
        for launch in problem.project.launches(function) or []:
            if not launch.plain or position >= len(launch.arguments):
                return None
            texts.add(_visible(launch.source, launch.arguments[position], source))
    else:
        for caller, call in problem.project.calls(function) or []:
            around = caller.function_of(call)
            if around is None or position >= len(call.args) or caller is not source:
                return None
            texts.add(_constant(problem, caller, around, call.args[position], depth - 1))
    return texts.pop() if len(texts) == 1 else None


def _visible(there: Source, node: ast.expr, here: Source) -> str | None:
    """A constant of the host that the file of the kernel can name as well."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value)
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
    if name is None or module_number(here, name) is None:
        return None
    if isinstance(node, ast.Name) and there is not here:
        imports = [n for n in there.nodes if isinstance(n, ast.ImportFrom)]
        imported = {a.asname or a.name for n in imports for a in n.names}
        return name if name in imported else None
    return name if isinstance(node, ast.Name) else None


def _number(source: Source, text: str) -> int | None:
    return int(text) if text.isdigit() else module_number(source, text)


def _more_unrolling(source: Source, function: ast.FunctionDef, most: int) -> Change | None:
    """Let this module unroll as many turns."""
    spelled = source.warp("set_module_options")
    first = next((s for s in source.tree.body if s is function or function in ast.walk(s)), None)
    calls = [n for n in source.nodes if isinstance(n, ast.Call)]
    if any(source.is_warp(call.func, "set_module_options") for call in calls):
        return None
    if spelled is None or first is None:
        return None
    return source.insert_before(first, f'{spelled}({{"max_unroll": {most}}})', "", "")


# -- a function that ends with the loop --------------------------------------------------------


def _split(problem: Problem, source: Source, function: ast.FunctionDef, loop: ast.For) -> Iterator[Candidate]:
    """What comes after the loop moves to a second function, which calls the first."""
    if not is_func(source, function) or loop not in function.body:
        return
    position = function.body.index(loop)
    before, after = function.body[:position], function.body[position + 1 :]
    if not after or not source.owns_lines(loop):
        return
    carried = _carried(loop, after)
    others = {n for s in before for n in _stored(s)} - set(carried)
    if not carried or others & {n for s in after for n in source.names_in(s)}:
        return
    name = source.fresh(function, f"{function.name}_{'_'.join(carried)}")
    header = source.text[source.start(function) : source.start(_first_code(function))]
    given = ", ".join(p.arg for p in parameters(function))
    indent = source.indent(loop)
    outer = source.indent(function)
    decorator = source.segment(function.decorator_list[0])
    at = header.index(f"def {function.name}") + 4
    define = source.start(function) + at
    values = ", ".join(carried)
    colon = source.text.rindex(":", 0, source.start(function.body[0]))
    end = source.end(function.returns) if function.returns is not None else colon
    signature = source.text[define + len(function.name) : end]
    lines = [
        f"{indent}return {values}",
        "",
        "",
        f"{outer}@{decorator}",
        f"{outer}def {function.name}{signature}:",
        f"{indent}{values} = {name}({given})",
    ]
    changes = [
        Change(source.display, define, define + len(function.name), name),
        source.insert_after(loop, *lines, indent=""),
    ]
    if function.returns is not None:
        close = source.text.rindex("->", 0, source.start(function.returns))
        bare = len(source.text[:close].rstrip())
        changes.append(Change(source.display, bare, source.end(function.returns), ""))
    yield problem.project.candidate("return what the loop computes from a function of its own", changes)


def _first_code(function: ast.FunctionDef) -> ast.stmt:
    return function.body[0]


def _carried(loop: ast.For, after: list[ast.stmt]) -> list[str]:
    """The variables that the loop computes and that are used behind it, in order."""
    used = {n.id for s in after for n in ast.walk(s) if isinstance(n, ast.Name)}
    return [
        name
        for name in dict.fromkeys(_stored(loop))
        if name in used and name != getattr(loop.target, "id", "")
    ]


def _stored(node: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


# -- the loop as a function --------------------------------------------------------------------


def _extracted(
    problem: Problem, source: Source, function: ast.FunctionDef, loop: ast.For
) -> Iterator[Candidate]:
    """The loop and what its variables begin with move to a function in front of this one."""
    block = source.block_of(loop)
    position = block.index(loop)
    if not source.owns_lines(loop) or any(isinstance(n, (ast.Return,)) for n in ast.walk(loop)):
        return
    after = [s for s in ast.walk(function) if isinstance(s, ast.stmt) and source.start(s) > source.end(loop)]
    carried = _carried(loop, after)
    starts = [s for s in block[:position] if isinstance(s, ast.Assign) and set(_stored(s)) <= set(carried)]
    if not carried or {n for s in starts for n in _stored(s)} != set(carried):
        return
    if not all(source.owns_lines(s) for s in starts) or _stores_elsewhere(loop, function):
        return
    inner = set(_stored(loop)) | set(carried)
    local = {p.arg for p in parameters(function)} | set(_stored(function))
    needed = [
        n.id
        for s in (*starts, loop)
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and n.id in local and n.id not in inner
    ]
    given = list(dict.fromkeys(needed))
    types = [type_of(source, function, ast.Name(name, ast.Load())) for name in given]
    spelled = source.warp("func")
    if spelled is None or not all(types):
        return
    name = source.fresh(function, f"{function.name}_{'_'.join(carried)}")
    top = function
    outer = source.indent(top)
    body = outer + source.unit(function)
    values = ", ".join(carried)
    typed = ", ".join(f"{n}: {t}" for n, t in zip(given, types, strict=True))
    lines = [
        f"{outer}@{spelled}",
        f"{outer}def {name}({typed}):",
        *(line for s in starts for line in source.lines_of(s, body)),
        *source.lines_of(loop, body),
        f"{body}return {values}",
        "",
        "",
    ]
    begin = source.starts[source.line_of(source.start(top)) - 1]
    text = "".join(f"{line}{source.newline}" for line in lines)
    indent = source.indent(loop)
    call = source.delete(loop)
    rest = Change(
        source.display, call.start, call.end, f"{indent}{values} = {name}({', '.join(given)}){source.newline}"
    )
    changes = [Change(source.display, begin, begin, text), *(source.delete(s) for s in starts), rest]
    yield problem.project.candidate("compute it by a function of its own", changes)


def _stores_elsewhere(loop: ast.For, function: ast.FunctionDef) -> bool:
    """Whether the loop also writes to arrays, which must go on to happen where it stands."""
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in ast.walk(loop))


FIXES = {"WL303": dynamic_loop}
