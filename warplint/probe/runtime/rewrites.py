"""Single statements of a kernel, and of the functions it calls, written in another way.

A rewrite computes what the statement computes, by operations whose adjoints are right (or finite). If
the adjoint of the kernel is right with it, the statement is why it was wrong. A rewrite that does not
fit the types at hand fails when it is built, and tells nothing.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

MOST = 6
"""Statements of one kind that are tried."""
PADDED = 20
"""Turns of a loop whose bound is not known beforehand."""
_CACHES = ("_reference_nodes", "_assigned_name_ids", "_assignment_call_metadata", "fun_def_lineno")
_ROOTS = {"sqrt": "max({}, 1.0e-12)", "log": "max({}, 1.0e-12)", "cbrt": "({}) + 1.0e-12"}
_ROOTS.update(log2=_ROOTS["log"], log10=_ROOTS["log"], pow="max({}, 1.0e-12)", exp="min({}, 60.0)")


class Rewrite:
    """What was rewritten, and the text of each function that holds it."""

    def __init__(self, name: str, lines: list[tuple[str, int]], bodies: dict[Any, str]) -> None:
        self.name = name
        self.lines = lines
        """Where the statements stand, the first one first."""
        self.bodies = bodies
        """By Warp function; the kernel itself is the key None."""


class Body:
    """The source of one function."""

    def __init__(self, owner: Any, function: Any) -> None:
        self.owner = owner
        self.tree = source_tree(function)
        self.file = getattr(getattr(function, "__code__", None), "co_filename", "")
        self.first = int(getattr(getattr(function, "__code__", None), "co_firstlineno", 1))
        self.arguments = {a.arg for a in self.tree.body[0].args.args} if self.tree is not None else set()

    def place(self, node: ast.AST) -> tuple[str, int]:
        return self.file, self.first + int(getattr(node, "lineno", 1)) - 1

    def rewritten(self, change: Any) -> str:
        tree = change.visit(copy.deepcopy(self.tree))
        return ast.unparse(ast.fix_missing_locations(tree))


@contextlib.contextmanager
def in_place(bodies: dict[Any, str]) -> Iterator[None]:
    """Functions with another text, while modules are built from them."""
    saved = []
    try:
        for function, source in bodies.items():
            overloads = getattr(function, "user_overloads", None) or {}
            for adjoint in {id(f.adj): f.adj for f in (function, *overloads.values())}.values():
                saved.append((adjoint, dict(adjoint.__dict__)))
                adjoint.source, adjoint.tree = source, ast.parse(source)
                adjoint.source_lines = source.splitlines()
                for name in _CACHES:
                    if hasattr(adjoint, name):
                        setattr(adjoint, name, None)
        yield
    finally:
        for adjoint, attributes in reversed(saved):
            adjoint.__dict__.clear()
            adjoint.__dict__.update(attributes)


def joined(found: list[Rewrite], bodies: list[Body], change: Callable[[Body], Any]) -> Rewrite:
    """All of some statements rewritten at once."""
    owners = {owner for rewrite in found for owner in rewrite.bodies}
    return Rewrite("", [], {b.owner: b.rewritten(change(b)) for b in bodies if b.owner in owners})


# -- operations that are not finite everywhere -------------------------------------------------


def guards(bodies: list[Body]) -> list[Rewrite]:
    """Roots, logarithms, powers, divisions and exponentials, each kept away from where it is infinite."""
    found = []
    for body in bodies:
        for number, node in enumerate(_Guard.candidates(body.tree)):
            found.append(
                Rewrite(_operation(node), [body.place(node)], {body.owner: body.rewritten(_Guard(number))})
            )
    return found[: 2 * MOST]


class _Guard(ast.NodeTransformer):
    def __init__(self, number: int) -> None:
        self.number = number
        self.marked: ast.AST | None = None

    @staticmethod
    def candidates(tree: Any) -> list[ast.AST]:
        found: list[Any] = [n for n in ast.walk(tree) if _operation(n)]
        return sorted(found, key=lambda n: (n.lineno, n.col_offset))

    def visit_Module(self, node: ast.Module) -> Any:
        self.marked = self.candidates(node)[self.number]
        return self.generic_visit(node)

    def visit(self, node: ast.AST) -> Any:
        if node is not self.marked:
            return super().visit(node)
        if isinstance(node, ast.Call):
            name = _called(node)
            node.args[0] = _expression(_ROOTS[name].format(ast.unparse(node.args[0])))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            node.left = _expression(_ROOTS["pow"].format(ast.unparse(node.left)))
        elif isinstance(node, ast.BinOp):
            text = ast.unparse(node.right)
            node.right = _expression(f"where(({text}) == 0.0, 1.0e-12, {text})")
        elif isinstance(node, ast.AugAssign):
            text = ast.unparse(node.value)
            node.value = _expression(f"where(({text}) == 0.0, 1.0e-12, {text})")
        return node


def _operation(node: ast.AST) -> str:
    """An operation that may be infinite, by name; empty for any other."""
    if isinstance(node, ast.Call) and node.args and _called(node) in _ROOTS:
        return {"pow": "power"}.get(_called(node), _called(node))
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        if isinstance(node.op, ast.Div):
            return "division"
        if isinstance(node.op, ast.Pow) and isinstance(node, ast.BinOp):
            return "power"
    return ""


# -- loops -------------------------------------------------------------------------------------


def loops(bodies: list[Body], known: dict[Any, dict[str, Any]]) -> list[Rewrite]:
    """Each loop with as many turns written out as it may take; ``known`` are numbers by function."""
    found = []
    for body in bodies:
        for number, node in enumerate(Unroll.candidates(body.tree)):
            name = ast.unparse(node.target) if isinstance(node, ast.For) else "while"
            text = body.rewritten(Unroll(number, known.get(body.owner, {})))
            end = int(getattr(node, "end_lineno", node.lineno))
            lines = [(body.file, body.first + line - 1) for line in range(node.lineno, end + 1)]
            found.append(Rewrite(name, lines, {body.owner: text}))
    return found[:MOST]


class Unroll(ast.NodeTransformer):
    """One loop, or all of them, with a bound that is known when the kernel is built."""

    def __init__(self, number: int | None, known: dict[str, Any]) -> None:
        self.number, self.known = number, known
        self.marked: list[ast.AST] = []

    @staticmethod
    def candidates(tree: Any) -> list[Any]:
        return [n for n in ast.walk(tree) if isinstance(n, ast.While) or _is_range(n)]

    def visit_Module(self, node: ast.Module) -> Any:
        every = self.candidates(node)
        self.marked = every if self.number is None else [every[self.number]]
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if not any(node is m for m in self.marked):
            return node
        call: Any = node.iter
        numbers = [n for n in (number_of(a, self.known) for a in call.args) if n is not None]
        simple = not any(isinstance(n, (ast.Break, ast.Continue, ast.Return)) for n in ast.walk(node))
        if len(numbers) == len(call.args) and len(range(*numbers)) <= 256 and simple:
            call.args = [ast.Constant(n) for n in numbers]
            return node
        if len(call.args) > 2:
            return node
        first, last = call.args if len(call.args) == 2 else (ast.Constant(0), call.args[0])
        name, start, stop = ast.unparse(node.target), ast.unparse(first), ast.unparse(last)
        turn = f"warplint_{name}"
        return _padded(
            turn, f"({start}) + {turn} < {stop}", [_statement(f"{name} = ({start}) + {turn}")], node.body
        )

    def visit_While(self, node: ast.While) -> Any:
        self.generic_visit(node)
        if not any(node is m for m in self.marked):
            return node
        return _padded(f"warplint_turn{node.lineno}", ast.unparse(node.test), [], node.body)


def _padded(turn: str, test: str, before: list[Any], body: list[Any]) -> Any:
    """A loop of constant length whose body is skipped once the test has failed."""
    flag = f"{turn}_on"
    leaves = any(isinstance(n, ast.Break) for s in body for n in ast.walk(s))
    inner = ast.If(_expression(test), [*before, *(_without_break(body, flag) if leaves else body)], [])
    lines: list[Any] = [inner]
    if leaves:
        lines = [ast.If(_expression(f"{flag} == 1"), [inner], [])]
    loop = _statement(f"for {turn} in range({PADDED}):\n    pass")
    loop.body = lines
    return [_statement(f"{flag} = int(1)"), loop] if leaves else loop


def _without_break(body: list[Any], flag: str) -> list[Any]:
    """``if test: …; break`` as a flag that the rest of the turn asks for."""
    for number, statement in enumerate(body):
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break):
            left = ast.If(statement.test, [*statement.body[:-1], _statement(f"{flag} = 0")], statement.orelse)
            rest = _without_break(body[number + 1 :], flag)
            return [
                *body[:number],
                left,
                *([ast.If(_expression(f"{flag} == 1"), rest, [])] if rest else []),
            ]
    return body


def _is_range(node: ast.AST) -> bool:
    """Whether a loop is one that Warp may leave a loop."""
    if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or _called(node.iter) != "range":
        return False
    numbers = [number_of(a, {}) for a in node.iter.args]
    known = [n for n in numbers if n is not None]
    return len(known) < len(numbers) or len(range(*known)) > 16


def number_of(node: ast.expr, names: dict[str, Any]) -> int | None:
    """An expression of plain numbers, worked out."""
    try:
        value = eval(compile(ast.Expression(node), "<bound>", "eval"), {"__builtins__": {}}, names)
        return int(value) if not isinstance(value, bool) else None
    except Exception:
        return None


# -- components --------------------------------------------------------------------------------


def parts(bodies: list[Body]) -> list[Rewrite]:
    """For each local whose parts are assigned: the same by sums, whose adjoints leave nothing behind."""
    found = []
    for body in bodies:
        stored: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for node in ast.walk(body.tree):
            which = _part(node, body.arguments)
            if which is not None:
                stored.setdefault(which, []).append(body.place(node))
        for which, lines in stored.items():
            text = body.rewritten(Sums(which, body))
            found.append(Rewrite(".".join(n for n in which if n), sorted(lines), {body.owner: text}))
    return found[:MOST]


def struct_parts(bodies: list[Body]) -> bool:
    """Whether a part of a field of a local struct is assigned: no option of Warp's mends that."""
    return any((_part(n, b.arguments) or ("", ""))[1] for b in bodies for n in ast.walk(b.tree))


class Sums(ast.NodeTransformer):
    """Parts of one local, or of all, assigned by adding what they lack."""

    def __init__(self, which: tuple[str, str] | None, body: Body) -> None:
        self.which, self.arguments = which, body.arguments

    def visit_Assign(self, node: ast.Assign) -> Any:
        return self.summed(node, node.targets[0], ast.unparse(node.value))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        whole = ast.BinOp(copy.deepcopy(node.target), node.op, node.value)
        return self.summed(node, node.target, ast.unparse(whole))

    def summed(self, node: Any, target: Any, value: str) -> Any:
        which = _part(node, self.arguments)
        if which is None or (self.which is not None and which != self.which):
            return node
        whole, part = ast.unparse(target.value), ast.unparse(target)
        unit = f"warplint_unit{node.lineno}"
        place = part[len(whole) :]
        text = (
            f"{unit} = {whole} - {whole}\n{unit}{place} = 1.0\n"
            f"{whole} = {whole} + (({value}) - {part}) * {unit}"
        )
        return ast.parse(text).body


def _part(node: ast.AST, arguments: set[str]) -> tuple[str, str] | None:
    """Of which local (and which field of it) a statement assigns a part."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        target: Any = node.targets[0]
    elif isinstance(node, ast.AugAssign):
        target = node.target
    else:
        return None
    attribute = target.attr if isinstance(target, ast.Attribute) else ""
    named = bool(attribute) and attribute in "xyzw"
    if not named and not isinstance(target, ast.Subscript):
        return None
    owner: Any = target.value
    field = ""
    if isinstance(owner, ast.Attribute):
        owner, field = owner.value, owner.attr
    if not isinstance(owner, ast.Name) or owner.id in arguments:
        return None
    return owner.id, field


# -- pieces of syntax --------------------------------------------------------------------------


def source_tree(function: Any) -> Any:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statement(text: str) -> Any:
    return ast.parse(text).body[0]
