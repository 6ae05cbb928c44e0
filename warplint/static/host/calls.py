"""Calls of project code: functions, methods, constructors and decorators, inlined."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host.core import MAX_DEPTH, Frame, merge
from warplint.static.host.python import PythonLibrary
from warplint.static.host.values import (
    UNKNOWN,
    Bound,
    Class,
    Dict,
    External,
    Function,
    Generator,
    Instance,
    Mark,
    Placeholder,
    Scope,
)

__all__ = ["Calls"]


def callee_name(callee: Any) -> str:
    return callee.last if isinstance(callee, External) else ""


class Calls(PythonLibrary):
    """Everything with parentheses."""

    marks: tuple[list[Mark | None], dict[str, Mark | None]] = ([], {})

    def _call(self, node: cst.Call) -> Any:
        if isinstance(node.func, cst.Name) and node.func.value == "super":
            return self._super()
        callee = self.evaluate(node.func)
        if "assert" in called_as(node):  # what is only looked at by a test is not used
            self.life.checking += 1
            try:
                return self._call_with(callee, node)
            finally:
                self.life.checking -= 1
        return self._call_with(callee, node)

    def _call_with(self, callee: Any, node: cst.Call) -> Any:
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        marks: list[Mark | None] = []
        named: dict[str, Mark | None] = {}
        exact = True
        follow = isinstance(callee, (Function, Class)) or (isinstance(callee, Bound) and callee.function)
        for argument in node.args:
            value = self.evaluate(argument.value)
            if argument.star == "*":
                items = self.iterate(value)
                if items is None:
                    exact = False
                else:
                    args.extend(items)
                    marks.extend([None] * len(items))
            elif argument.star == "**":
                if isinstance(value, Dict):
                    kwargs.update({k: v for k, v in value.items.items() if isinstance(k, str)})
            elif argument.keyword is not None:
                kwargs[argument.keyword.value] = value
                named[argument.keyword.value] = self.origin(argument.value) if follow else None
            else:
                args.append(value)
                marks.append(self.origin(argument.value) if follow else None)
        if not exact and isinstance(callee, External) and callee.name.startswith("warp"):
            self.skip(f"{self.frame.module.source.display}: call with unknown *arguments")
        self.marks = (marks, named)
        result = self.call(callee, args, kwargs, node)
        if result is UNKNOWN and not follow and (args or kwargs):
            name = called_as(node) if isinstance(node.func, cst.Attribute) else callee_name(callee)
            given = [*args, *kwargs.values()]
            self.life.handed_on(name, given, self.site(node), self.frame.statement, dict(self.guards))
        return result

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        marks, self.marks = self.marks, ([], {})
        if isinstance(callee, Function):
            return self.call_function(callee, args, kwargs, node, marks)
        if isinstance(callee, Bound):
            if callee.function is not None:
                positional, named = marks
                return self.call_function(
                    callee.function, [callee.receiver, *args], kwargs, node, ([None, *positional], named)
                )
            return self.call_method(callee.receiver, callee.name, args, kwargs, node)
        if isinstance(callee, Class):
            return self.construct(callee, args, kwargs, node, marks)
        if isinstance(callee, External):
            return self.call_external(callee, args, kwargs, node)
        if isinstance(callee, Instance):
            return self._call_instance(callee, args, kwargs, node)
        if isinstance(callee, Placeholder):
            self.skip(f"{self.frame.module.source.display}: {callee.name}()")
        return UNKNOWN

    def _call_instance(self, callee: Instance, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if isinstance(callee.cls, Class):
            for name in ("__call__", "forward"):
                method = callee.cls.lookup(name)
                if isinstance(method, Function):
                    return self.call_function(method, [callee, *args], kwargs, node)
        elif isinstance(callee.cls, External) and callee.cls.last == "partial":
            inner = callee.attributes
            return self.call(inner["func"], [*inner["args"], *args], {**inner["kwargs"], **kwargs}, node)
        return UNKNOWN

    def _super(self) -> Any:
        function = self.frame.function
        if function is None or function.owner is None:
            return UNKNOWN
        scope: Scope | None = self.frame.scope
        receiver: Any = self.frame.receiver
        while receiver is None and scope is not None:
            receiver = scope.names.get("self")
            scope = scope.parent
        proxy = Class(f"super({function.owner.name})", None, function.owner.module, function.owner.bases)
        return Instance(External("builtins.super"), {"cls": proxy, "self": receiver})

    # -- functions ----------------------------------------------------------------------------

    def call_function(
        self,
        function: Function,
        args: list[Any],
        kwargs: dict[str, Any],
        node: Any,
        marks: tuple[list[Mark | None], dict[str, Mark | None]] = ([], {}),
    ) -> Any:
        """Inline a function of the tree."""
        self.called.add(function.node)
        if function.kind != "host":
            return UNKNOWN
        same = sum(1 for f in self.frames if f.function is not None and f.function.node is function.node)
        if len(self.frames) >= MAX_DEPTH or same > 2:
            self.skip(f"{function.module.source.display}: {function.name} (too deep)")
            return UNKNOWN
        scope = Scope({}, function.scope)
        if not self._bind_parameters(function, scope, args, kwargs, marks):
            return UNKNOWN
        receiver = args[0] if args and function.owner is not None else None
        if self.is_generator(function):
            return Generator(function, scope, receiver)
        frame = Frame(scope, function.module, function)
        frame.receiver = receiver
        self.frames.append(frame)
        try:
            if isinstance(function.node, cst.Lambda):
                return self.evaluate(function.node.body)
            signal = self.block(function.node.body)
        finally:
            self.frames.pop()
        result: Any = None
        if signal is not None:
            result = signal.value if signal.kind == "return" else UNKNOWN
        for other in frame.maybe_returned:
            if result is None:
                result = other
            elif other is not None:
                result = merge(result, other)
        return result

    def _bind_parameters(
        self,
        function: Function,
        scope: Scope,
        args: list[Any],
        kwargs: dict[str, Any],
        marks: tuple[list[Mark | None], dict[str, Mark | None]],
    ) -> bool:
        params = function.node.params
        positional = [*params.posonly_params, *params.params]
        names = [p.name.value for p in positional]
        keyword_only = [p.name.value for p in params.kwonly_params]
        values: dict[str, Any] = dict(zip(names, args, strict=False))
        for position, name in enumerate(names):
            mark = marks[0][position] if position < len(marks[0]) else None
            if mark is not None:
                scope.bindings[name] = mark
        extra = args[len(names) :]
        rest: dict[str, Any] = {}
        for name, value in kwargs.items():
            if name in names or name in keyword_only:
                values[name] = value
                mark = marks[1].get(name)
                if mark is not None:
                    scope.bindings[name] = mark
            else:
                rest[name] = value
        for name in (*names, *keyword_only):
            if name not in values:
                values[name] = function.defaults.get(name, UNKNOWN)
        if isinstance(params.star_arg, cst.Param):
            values[params.star_arg.name.value] = tuple(extra)
        if params.star_kwarg is not None:
            values[params.star_kwarg.name.value] = Dict(dict(rest))
        scope.names.update(values)
        return True

    # -- classes ------------------------------------------------------------------------------

    def construct(
        self,
        cls: Class,
        args: list[Any],
        kwargs: dict[str, Any],
        node: Any,
        marks: tuple[list[Mark | None], dict[str, Mark | None]] = ([], {}),
    ) -> Instance:
        self.called.add(cls.node)
        made = Instance(cls, open=cls.has_unknown_base)
        init = cls.lookup("__init__")
        if isinstance(init, Function):
            self.call_function(init, [made, *args], kwargs, node, ([None, *marks[0]], marks[1]))
            return made
        fields = cls.all_fields()
        if cls.is_struct:
            for name in fields:
                made.attributes[name] = None
            return made
        if cls.is_dataclass:
            for position, name in enumerate(fields):
                default = cls.lookup(name)
                if position < len(args):
                    made.attributes[name] = args[position]
                elif name in kwargs:
                    made.attributes[name] = kwargs[name]
                elif isinstance(default, Instance) and isinstance(default.cls, External):
                    factory = default.attributes.get("default_factory")
                    plain = default.attributes.get("default", UNKNOWN)
                    made.attributes[name] = self.call(factory, [], {}, node) if factory is not None else plain
                else:
                    made.attributes[name] = default if cls.has(name) else UNKNOWN
            post = cls.lookup("__post_init__")
            if isinstance(post, Function):
                self.call_function(post, [made], {}, node)
        return made

    def decorate(self, decorator: Any, value: Any) -> Any:
        options: dict[str, Any] = {}
        target = decorator
        arguments: list[Any] = []
        if isinstance(decorator, cst.Call):
            target = decorator.func
            for argument in decorator.args:
                if argument.keyword is not None:
                    options[argument.keyword.value] = self.evaluate(argument.value)
                else:
                    arguments.append(self.evaluate(argument.value))
        if isinstance(target, cst.Attribute) and target.attr.value in ("setter", "deleter", "getter"):
            existing = self.evaluate(target.value)
            if isinstance(existing, Function) and isinstance(value, Function):
                if target.attr.value == "setter":
                    existing.setter = value
                return existing
        known = self.evaluate(target)
        if isinstance(known, External):
            return self._decorate_external(known, value, arguments, options)
        if isinstance(known, Function) and isinstance(value, (Function, Class)):
            function: Any = known
            if isinstance(decorator, cst.Call):
                function = self.call_function(known, arguments, options, decorator)
            wrapped = self.call(function, [value], {}, decorator)
            return wrapped if isinstance(wrapped, (Function, Class, Instance)) else value
        return value

    def _decorate_external(
        self, known: External, value: Any, arguments: list[Any], options: dict[str, Any]
    ) -> Any:
        last = known.last
        if isinstance(value, Class):
            if last == "struct":
                value.is_struct = True
            elif last in ("dataclass", "define", "attrs", "s", "frozen", "mutable"):
                value.is_dataclass = True
            return value
        if not isinstance(value, Function):
            return value
        if known.name.startswith("warp"):
            if last in ("kernel", "func", "func_native"):
                value.kind = "native" if last == "func_native" else last
                value.options = options
                if last == "kernel":
                    self.kernels.append(value)
                if last == "func_native":
                    names = ("snippet", "adj_snippet", "replay_snippet")
                    value.options = {**dict(zip(names, arguments, strict=False)), **options}
            elif last in ("func_grad", "func_replay", "overload"):
                target = arguments[0] if arguments else None
                if last == "func_grad" and isinstance(target, Function):
                    target.attributes["custom_gradient"] = value
                if last == "func_replay" and isinstance(target, Function):
                    target.attributes["replay"] = value
                value.kind = "func"
            elif last == "integrand":
                value.kind = "func"
            return value
        if last == "property":
            value.binding = "property"
        elif last == "cached_property":
            value.binding = "cached"
        elif last == "staticmethod":
            value.binding = "static"
        elif last == "classmethod":
            value.binding = "class"
        return value


def called_as(node: cst.Call) -> str:
    """The last name in what is called, as written."""
    if isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return node.func.value if isinstance(node.func, cst.Name) else ""
