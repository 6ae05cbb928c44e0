"""WL507: the seeds of the backward pass become the derivative of the number that is reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from warplint.fixes.project import Candidate, Problem, method_calls
from warplint.fixes.source import Source

__all__ = ["FIXES"]


def seeds(problem: Problem) -> Iterator[Candidate]:
    found = problem.node()
    if found is None:
        return
    source, node = found
    statement = source.statement(node)
    shapes = list(_shapes(problem))
    for call, output in _constant_seeds(problem, source, statement):
        for title, full, scaled in shapes:
            text = _made(source, call, output, full, scaled)
            if text is not None:
                changes = [source.replace(call, text)]
                yield problem.project.candidate(title, changes, same_values=False)


def _shapes(problem: Problem) -> Iterator[tuple[str, str | None, str | None]]:
    """Derivatives to try, as a constant or as a multiple of the outputs; what is reported orders them."""
    text = _reported(problem)
    mean = "mean" in text or "average" in text
    squares = any(w in text for w in ("**", "square", "dot", " * ", "norm", "@"))
    half = "0.5" in text or "/ 2" in text
    n = "{0}.size"
    # (how much they fit, title, constant seed, factor of the output)
    shapes = [
        (not squares, mean, "the mean", f"1.0 / {n}", None),
        (squares and half, not mean, "half the sum of squares", None, ""),
        (squares and not half, not mean, "the sum of squares", None, "2.0 * "),
        (squares and half, mean, "half the mean of squares", None, f"1.0 / {n} * "),
        (squares and not half, mean, "the mean of squares", None, f"2.0 / {n} * "),
        (not squares, not mean and "-" in text, "the negative sum", "-1.0", None),
    ]
    shapes.sort(key=lambda shape: -(2 * shape[0] + shape[1]))
    for _, _, words, full, scaled in shapes:
        yield f"seed with the derivative of {words}", full, scaled


def _reported(problem: Problem) -> str:
    """The text of what computes the reported number: its statement, and the functions around and in it."""
    words = [problem.result.message.partition("reports")[2]]
    for name in problem.quoted[1:]:
        words += [_code(s, f) for s, f in problem.project.functions(name)]
        if problem.source is not None:
            words += [
                problem.source.segment(node.value)
                for node in ast.walk(problem.source.tree)
                if isinstance(node, ast.Assign) and problem.source.segment(node.targets[0]) == name
            ]
    for place in problem.related("reported"):
        found = problem.node(place)
        if found is None:
            continue
        source, node = found
        statement = source.statement(node)
        words.append(source.segment(statement))
        for call in ast.walk(statement):
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                words += [_code(s, f) for s, f in problem.project.functions(name)]
        function = source.function_of(statement)
        if function is not None and isinstance(statement, ast.Return):
            words.append(_code(source, function))
    return "\n".join(words)


def _code(source: Source, function: ast.FunctionDef) -> str:
    """The statements of a function, without what it says of itself."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return "\n".join(source.segment(s) for s in body)


def _constant_seeds(problem: Problem, source: Source, statement: ast.stmt) -> Iterator[tuple[ast.Call, str]]:
    """Calls that make the seeds, or fill them, with the output that they are for."""
    for call in method_calls(statement, "fill_"):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(receiver, ast.Attribute) and receiver.attr == "grad":
            yield call, source.segment(receiver.value)
    for made in ast.walk(statement):
        if isinstance(made, ast.Call) and source.is_warp(
            made.func, "ones", "ones_like", "full", "full_like", "array"
        ):
            output = _output(source, made)
            if output is not None:
                yield made, output


def _output(source: Source, call: ast.Call) -> str | None:
    """The output that seeds are handed to ``backward`` for."""
    statement = source.statement(call)
    name = (
        source.segment(statement.targets[0])
        if isinstance(statement, ast.Assign) and statement.value is call
        else None
    )
    scope = source.scope_of(call)
    for backward in method_calls(scope, "backward"):
        for given in (*backward.args, *(k.value for k in backward.keywords)):
            if isinstance(given, ast.Dict):
                for key, value in zip(given.keys, given.values, strict=True):
                    if key is not None and (value is call or source.segment(value) == name):
                        return source.segment(key)
    if source.is_warp(call.func, "ones_like", "full_like") and call.args:
        return source.segment(call.args[0])
    return None


def _made(source: Source, call: ast.Call, output: str, full: str | None, scaled: str | None) -> str | None:
    """The new seeds, in the way the old ones are given."""
    value = full.format(output) if full is not None else None
    if isinstance(call.func, ast.Attribute) and call.func.attr == "fill_":
        grad = f"{output}.grad"
        if value is not None:
            return f"{grad}.fill_({value})"
        return (
            f"{grad}.assign({output})"
            if not scaled
            else f"{grad}.assign({scaled.format(output)}{output}.numpy())"
        )
    full_like, clone, array = source.warp("full_like"), source.warp("clone"), source.warp("array")
    if value is not None:
        return f"{full_like}({output}, {value}, requires_grad=False)" if full_like else None
    if not scaled:
        return f"{clone}({output}, requires_grad=False)" if clone else None
    return f"{array}({scaled.format(output)}{output}.numpy(), dtype={output}.dtype)" if array else None


FIXES = {"WL507": seeds}
