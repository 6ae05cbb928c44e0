"""Lists, dicts and comprehensions, and what can be iterated over."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host.core import has_unknown, truth
from warplint.static.host.operators import Operators
from warplint.static.host.values import (
    MAX_ITEMS,
    UNKNOWN,
    UNKNOWN_LENGTH,
    Class,
    Dict,
    Function,
    Instance,
    List,
    Range,
    Scope,
    Unknown,
)

__all__ = ["Displays"]


class Displays(Operators):
    """Containers are made element by element, as far as the number of elements is known."""

    def _elements(self, elements: Any) -> list[Any] | None:
        items: list[Any] = []
        for element in elements:
            if isinstance(element, cst.StarredElement):
                inner = self.iterate(self.evaluate(element.value))
                if inner is None:
                    return None
                items.extend(inner)
            else:
                items.append(self.evaluate(element.value))
        return items

    def _list(self, node: Any) -> Any:
        items = self._elements(node.elements)
        return List(items) if items is not None else List([], exact=False)

    def _tuple(self, node: cst.Tuple) -> Any:
        items = self._elements(node.elements)
        return tuple(items) if items is not None else UNKNOWN

    def _dict(self, node: cst.Dict) -> Any:
        made = Dict()
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                key, value = self.evaluate(element.key), self.evaluate(element.value)
                if isinstance(key, (Unknown, tuple)) and has_unknown(key):
                    made.exact = False
                    continue
                try:
                    made.items[key] = value
                except TypeError:
                    made.exact = False
            else:
                other = self.evaluate(element.value)
                if isinstance(other, Dict):
                    made.items.update(other.items)
                    made.exact = made.exact and other.exact
                else:
                    made.exact = False
        return made

    def iterate(self, value: Any) -> list[Any] | None:
        """The elements of an iterable, or None if they are not known."""
        if isinstance(value, List):
            return list(value.items) if value.exact or value.items else None
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, Dict):
            return list(value.items) if value.exact else None
        if isinstance(value, str):
            return list(value) if len(value) < 100 else None
        if isinstance(value, Range):
            start, stop, step = value.start, value.stop, value.step
            if not isinstance(start, int):
                start = 0
            if not isinstance(step, int) or step == 0:
                step = 1
            if not isinstance(stop, int):
                stop = start + UNKNOWN_LENGTH * step
            numbers = range(start, stop, step)
            return list(numbers) if len(numbers) <= MAX_ITEMS else None
        if isinstance(value, Class) and value.is_enum:
            return [v for k, v in value.attributes.items() if not k.startswith("_")]
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            if value.cls.is_tuple:
                return [value.attributes.get(name, UNKNOWN) for name in value.cls.all_fields()]
            method = value.cls.lookup("__iter__")
            if isinstance(method, Function):
                inner = self.call_function(method, [value], {}, method.node)
                return self.iterate(inner) if inner is not value else None
        return None

    def _comprehension(self, node: Any) -> Any:
        if isinstance(node, cst.DictComp):
            pairs = Dict()

            def add_pair() -> None:
                key, value = self.evaluate(node.key), self.evaluate(node.value)
                try:
                    pairs.items[key] = value
                except TypeError:
                    pairs.exact = False

            pairs.exact = self._generate(node.for_in, add_pair)
            return pairs
        made = List()
        made.exact = self._generate(node.for_in, lambda: made.items.append(self.evaluate(node.elt)))
        return made

    def _generate(self, clause: cst.CompFor, add: Any) -> bool:
        """Run the clauses of a comprehension in a scope of their own; whether all was known."""
        frame = self.frame
        outer = frame.scope
        frame.scope = Scope({}, outer)
        try:
            return self._clause(clause, add)
        finally:
            frame.scope = outer

    def _clause(self, clause: cst.CompFor, add: Any) -> bool:
        iterable = self.evaluate(clause.iter)
        items = self.iterate(iterable)
        exact = items is not None
        if items is None:
            items = [UNKNOWN] * UNKNOWN_LENGTH if not isinstance(iterable, Range) else list(range(MAX_ITEMS))
        for turn, item in enumerate(items[:MAX_ITEMS]):
            self.turns.append(turn)
            try:
                self.assign_target(clause.target, item)
                if all(truth(self.evaluate(c.test)) is not False for c in clause.ifs):
                    if clause.inner_for_in is not None:
                        exact = self._clause(clause.inner_for_in, add) and exact
                    else:
                        add()
            finally:
                self.turns.pop()
        return exact

    def assign_target(self, target: Any, value: Any, source: Any = None) -> None:
        raise NotImplementedError
