"""A ``@wp.func`` built again in double precision: the same statements with wider numbers."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
from typing import Any

import warp
from warp._src import context

from .rewrites import source_tree

_WIDER = {"float": warp.float64, "float32": warp.float64}
for _name in ("vec2", "vec3", "vec4", "mat22", "mat33", "mat44", "quat", "transform"):
    for _suffix in ("", "f"):
        if hasattr(warp, f"{_name}{_suffix}") and hasattr(warp, f"{_name}d"):
            _WIDER[f"{_name}{_suffix}"] = getattr(warp, f"{_name}d")
_PLAIN = {
    getattr(warp, name): wider for name, wider in _WIDER.items() if name != "float" and hasattr(warp, name)
}
_PLAIN[float] = warp.float64


def wider(kind: Any) -> Any:
    """The type of double precision that stands for ``kind``; itself if there is none."""
    try:
        return _PLAIN.get(kind, kind)
    except TypeError:
        return kind


def in_double(function: Any, module: Any) -> Any:
    """The function with all its numbers and those of what it calls in double precision; may raise."""
    return _Doubled(module).function(function)


def compiled(source: str, name: str, names: dict[str, Any]) -> Any:
    """A Python function from its text, which ``inspect`` can find again."""
    file = f"<warplint {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names[name]


class _Doubled:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.made: dict[int, Any] = {}

    def function(self, function: Any) -> Any:
        if id(function) in self.made:
            return self.made[id(function)]
        if function.func is None or function.native_snippet is not None:
            raise TypeError("native code cannot be widened")
        tree = source_tree(function.func)
        outer = inspect.getclosurevars(function.func).nonlocals
        known = {**vars(builtins), **function.func.__globals__, **outer}
        widen = _Widen(self, known)
        definition = tree.body[0]
        definition.decorator_list = []
        definition.name = name = f"warplint_double_{len(self.made)}_{definition.name}"
        widen.local = {a.arg for a in definition.args.args}
        widen.visit(definition)
        source = ast.unparse(ast.fix_missing_locations(tree))
        made = compiled(source, name, {**known, **widen.names})
        self.made[id(function)] = result = context.Function(
            func=made, key=name, namespace="", module=self.module, value_func=None
        )
        return result


class _Widen(ast.NodeTransformer):
    """Numbers, constants, types and called functions by their wider twins."""

    def __init__(self, doubled: _Doubled, known: dict[str, Any]) -> None:
        self.doubled = doubled
        self.known = known
        self.names: dict[str, Any] = {}
        self.local: set[str] = set()

    def named(self, value: Any) -> ast.expr:
        name = f"warplint_{len(self.names)}"
        self.names[name] = value
        return ast.Name(name, ast.Load())

    def number(self, value: float) -> ast.expr:
        return ast.Call(self.named(warp.float64), [ast.Constant(value)], [])

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return self.number(node.value) if isinstance(node.value, float) else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.replaced(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        found = self.replaced(node)
        return self.generic_visit(node) if found is node else found

    def replaced(self, node: Any) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        value = self.value(node)
        if isinstance(value, float):
            return self.number(value)
        if isinstance(value, type):
            other = wider(value)
            return node if other is value else self.named(other)
        if isinstance(value, context.Function) and not value.is_builtin():
            return self.named(self.doubled.function(value))
        return node

    def value(self, node: Any) -> Any:
        if isinstance(node, ast.Name):
            return None if node.id in self.local else self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return getattr(owner, node.attr, None) if owner is not None else None
        return None
