"""Generator functions: their body runs where their values are consumed, as in Python.

The interpreter does not suspend anything. Instead the consumer becomes a callback: at each ``yield``
the body of the loop (or of the ``with`` block) runs in its own frame, then the generator goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import libcst as cst

from warplint.static.host.core import Frame, StopGeneratorError
from warplint.static.host.modules import Modules
from warplint.static.host.values import UNKNOWN, Function, Generator, List

__all__ = ["Generators"]

_MAX_VALUES = 2000


class Generators(Modules):
    """``yield``, and what consumes it."""

    def is_generator(self, function: Function) -> bool:
        node = function.node
        if not function.may_yield or isinstance(node, cst.Lambda):
            return False
        if node not in self.project.generators:
            finder = _YieldFinder()
            node.body.visit(finder)
            self.project.generators[node] = finder.found
        return self.project.generators[node]

    def drive(self, generator: Generator, consume: Callable[[Any], None]) -> None:
        """Run a generator to its end or until the consumer wants no more."""
        if generator.values is not None:
            for value in generator.values.items:
                consume(value)
            return
        generator.values = List()
        function, outer = generator.function, self.frame
        depth = len(self.frames)

        def handed_over(value: Any) -> None:
            self.frames.append(outer)
            try:
                consume(value)
            finally:
                self.frames.pop()

        frame = Frame(generator.scope, function.module, function)
        frame.receiver = generator.receiver
        frame.consumer = handed_over
        self.frames.append(frame)
        try:
            self.block(function.node.body)
        finally:
            del self.frames[depth:]

    def consumed(self, generator: Generator) -> list[Any]:
        """All values of a generator, where nothing happens between them."""
        if generator.values is None:
            values: list[Any] = []

            def take(value: Any) -> None:
                values.append(value)
                if len(values) >= _MAX_VALUES:
                    raise StopGeneratorError

            with contextlib.suppress(StopGeneratorError):
                self.drive(generator, take)
            generator.values = List(values)
        return list(generator.values.items)

    def iterate(self, value: Any) -> list[Any] | None:
        return self.consumed(value) if isinstance(value, Generator) else super().iterate(value)

    def _yield(self, node: cst.Yield) -> Any:
        consumer = self.frame.consumer
        delegated = isinstance(node.value, cst.From)
        value: Any = None
        if node.value is not None:
            value = self.evaluate(node.value.item if isinstance(node.value, cst.From) else node.value)
        if consumer is None:
            return UNKNOWN
        if not delegated:
            consumer(value)
        elif isinstance(value, Generator):
            self.drive(value, consumer)
        else:
            for item in self.iterate(value) or ():
                consumer(item)
        return None


class _YieldFinder(cst.CSTVisitor):
    """Whether a body yields itself, functions inside of it aside."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def visit_Yield(self, node: cst.Yield) -> bool:  # noqa: N802
        self.found = True
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:  # noqa: N802
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: N802
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> bool:  # noqa: N802
        return False
