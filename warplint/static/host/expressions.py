"""Evaluation of expressions that are not calls."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host.displays import Displays
from warplint.static.host.values import (
    UNKNOWN,
    Function,
)

__all__ = ["Expressions"]


class Expressions(Displays):
    """Chooses how an expression is evaluated by its kind of node."""

    def evaluate(self, node: Any) -> Any:
        self.step()
        handler = _HANDLERS.get(type(node))
        return handler(self, node) if handler is not None else UNKNOWN

    def _lambda(self, node: cst.Lambda) -> Any:
        frame = self.frame
        return Function("<lambda>", node, frame.module, frame.scope, defaults=self.defaults(node.params))

    def defaults(self, params: cst.Parameters) -> dict[str, Any]:
        """Default values of parameters, evaluated where the function is defined."""
        everything = (*params.posonly_params, *params.params, *params.kwonly_params)
        return {p.name.value: self.evaluate(p.default) for p in everything if p.default is not None}

    def _string(self, node: Any) -> Any:
        try:
            return node.evaluated_value
        except (ValueError, SyntaxError, AttributeError):
            return UNKNOWN

    def _integer(self, node: cst.Integer) -> Any:
        return int(node.value.replace("_", ""), 0)

    def _float(self, node: cst.Float) -> Any:
        return float(node.value.replace("_", ""))

    def _named(self, node: cst.NamedExpr) -> Any:
        value = self.evaluate(node.value)
        self.assign_target(node.target, value)
        return value

    def _starred(self, node: Any) -> Any:
        return self.evaluate(node.value)

    def _formatted(self, node: cst.FormattedString) -> Any:
        """An f-string of known parts is a known string (names of cases, keys of tables)."""
        text: str | None = ""
        for part in node.parts:
            if isinstance(part, cst.FormattedStringExpression):
                value = self.evaluate(part.expression)
                simple = part.format_spec is None and part.conversion is None
                known = simple and isinstance(value, (int, float, str))
                text = text + str(value)[:200] if known and text is not None else None
            elif text is not None and isinstance(part, cst.FormattedStringText):
                text += part.value
        return UNKNOWN if text is None else text[:1000]

    def _await(self, node: Any) -> Any:
        return self.evaluate(node.expression) if node.expression is not None else UNKNOWN

    def _call(self, node: cst.Call) -> Any:
        raise NotImplementedError

    def _yield(self, node: cst.Yield) -> Any:
        raise NotImplementedError


_HANDLERS: dict[type, Any] = {
    cst.Name: Expressions._name,
    cst.Attribute: Expressions._attribute,
    cst.Subscript: Expressions._subscript,
    cst.Call: lambda self, node: self._call(node),
    cst.BinaryOperation: Expressions._binary,
    cst.UnaryOperation: Expressions._unary,
    cst.BooleanOperation: Expressions._boolean,
    cst.Comparison: Expressions._comparison,
    cst.IfExp: Expressions._ternary,
    cst.List: Expressions._list,
    cst.Set: Expressions._list,
    cst.Tuple: Expressions._tuple,
    cst.Dict: Expressions._dict,
    cst.ListComp: Expressions._comprehension,
    cst.SetComp: Expressions._comprehension,
    cst.GeneratorExp: Expressions._comprehension,
    cst.DictComp: Expressions._comprehension,
    cst.Lambda: Expressions._lambda,
    cst.SimpleString: Expressions._string,
    cst.ConcatenatedString: Expressions._string,
    cst.FormattedString: Expressions._formatted,
    cst.Integer: Expressions._integer,
    cst.Float: Expressions._float,
    cst.NamedExpr: Expressions._named,
    cst.StarredElement: Expressions._starred,
    cst.Await: Expressions._await,
    cst.Yield: lambda self, node: self._yield(node),
}
