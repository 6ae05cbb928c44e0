"""What Python itself brings: containers and their methods, built-in functions, a few modules.

Only what decides aliasing is modelled; the rest returns an unknown value.
"""

from __future__ import annotations

import math
from typing import Any

from warplint.static.host.core import is_known, truth
from warplint.static.host.generators import Generators
from warplint.static.host.values import (
    MAX_ITEMS,
    UNKNOWN,
    Buffer,
    Class,
    Dict,
    External,
    Function,
    Generator,
    Instance,
    List,
    Placeholder,
    Range,
    Tape,
    Unknown,
    View,
    carried,
)
from warplint.static.kernels import builtins as table

__all__ = ["PythonLibrary"]


class PythonLibrary(Generators):
    """Methods of containers and functions of Python's own library."""

    # -- methods of containers ----------------------------------------------------------------

    def call_method(
        self, receiver: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        if isinstance(receiver, List):
            return self._list_method(receiver, name, args)
        if isinstance(receiver, Dict):
            return self._dict_method(receiver, name, args)
        if isinstance(receiver, str):
            return self._string_method(receiver, name, args)
        if isinstance(receiver, Class):
            return self._apply(receiver, args, node) if name == "apply" else UNKNOWN
        if isinstance(receiver, Instance) and isinstance(receiver.cls, External):
            return self._library_object(receiver, name, args, kwargs, node)
        return self.array_method(receiver, name, args, kwargs, node)

    def _apply(self, cls: Class, args: list[Any], node: Any) -> Any:
        """``torch.autograd.Function``: the forward, and the backward torch will run on its context."""
        context = Instance(External("torch.autograd.Context"), open=True)
        forward, backward = cls.lookup("forward"), cls.lookup("backward")
        result: Any = UNKNOWN
        if isinstance(forward, Function):
            result = self.call_function(forward, [context, *args], {}, node)
        if isinstance(backward, Function):
            self.call_function(backward, [context, *([UNKNOWN] * 8)], {}, node)
        return result

    def array_method(
        self, receiver: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        raise NotImplementedError

    def _list_method(self, receiver: List, name: str, args: list[Any]) -> Any:
        items = receiver.items
        first = args[0] if args else None
        if name in ("append", "add", "appendleft"):
            if len(items) < MAX_ITEMS:
                self.touch(items)
                items.insert(0, first) if name == "appendleft" else items.append(first)
            return None
        if name in ("extend", "update"):
            added = self.iterate(first)
            self.touch(items)
            if added is None:
                receiver.exact = False
            else:
                items.extend(added[: MAX_ITEMS - len(items)])
            return None
        if name in ("pop", "popleft"):
            position = 0 if name == "popleft" else (first if isinstance(first, int) else -1)
            self.touch(items)
            try:
                return items.pop(position)
            except IndexError:
                return UNKNOWN
        if name == "insert" and isinstance(first, int) and len(args) > 1:
            self.touch(items)
            items.insert(first, args[1])
            return None
        if name in ("clear", "reverse", "rotate"):
            self.touch(items)
            if name == "clear":
                items.clear()
            elif name == "reverse":
                items.reverse()
            elif items:
                count = (first if isinstance(first, int) else 1) % len(items)
                items[:] = items[-count:] + items[:-count] if count else items
            return None
        if name == "copy":
            return List(list(items), receiver.exact)
        return UNKNOWN

    def _dict_method(self, receiver: Dict, name: str, args: list[Any]) -> Any:
        items = receiver.items
        first = args[0] if args else None
        if name == "items":
            return List([(k, v) for k, v in items.items()], receiver.exact)
        if name == "values":
            return List(list(items.values()), receiver.exact)
        if name == "keys":
            return List(list(items), receiver.exact)
        if name in ("get", "setdefault", "pop"):
            try:
                if first in items:
                    found = items[first]
                    if name == "pop":
                        self.touch(items)
                        del items[first]
                    return found
            except TypeError:
                return UNKNOWN
            default = args[1] if len(args) > 1 else None
            if name == "setdefault" and not isinstance(first, Unknown):
                self.put(items, first, default)
            return default if receiver.exact else UNKNOWN
        if name == "update" and args:
            self.touch(items)
            if isinstance(first, Dict):
                items.update(first.items)
            else:
                receiver.exact = False
            return None
        if name == "copy":
            return Dict(dict(items), receiver.exact)
        if name == "clear":
            self.touch(items)
            items.clear()
            return None
        return UNKNOWN

    def _string_method(self, receiver: str, name: str, args: list[Any]) -> Any:
        method: Any = getattr(receiver, name, None)
        if name in _STRING_METHODS and all(is_known(a) for a in args):
            try:
                result = method(*args)
            except (TypeError, ValueError, IndexError):
                return UNKNOWN
            return List(list(result)) if isinstance(result, list) else result
        return UNKNOWN

    def _library_object(
        self, receiver: Instance, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        kind = receiver.cls.last
        if kind == "super":
            method = receiver.attributes["cls"].lookup(name)
            if isinstance(method, Function):
                owner = receiver.attributes["self"]
                return self.call_function(method, [owner, *args], kwargs, node)
            return None
        if kind == "ArgumentParser":
            return self._argument_parser(receiver, name, args, kwargs)
        return UNKNOWN

    def _argument_parser(self, parser: Instance, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """argparse: what the program gets when it is started without arguments."""
        options = parser.attributes
        if name == "add_argument":
            flags = [a for a in args if isinstance(a, str)]
            if flags:
                longest = max(flags, key=len).lstrip("-").replace("-", "_")
                target = kwargs.get("dest", longest)
                action = kwargs.get("action")
                default = {"store_true": False, "store_false": True}.get(action) if action else None
                options[target] = kwargs.get("default", default)
            return UNKNOWN
        if name == "set_defaults":
            options.update(kwargs)
            return None
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return parser
        if name in ("parse_args", "parse_known_args"):
            namespace = Instance(External("argparse.Namespace"), dict(options))
            return (namespace, List()) if name == "parse_known_args" else namespace
        return UNKNOWN

    # -- functions of Python and its library ------------------------------------------------------

    def call_external(self, callee: External, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        prefix = callee.name.partition(".")[0]
        if prefix == "builtins":
            return self._builtin(callee.last, args, kwargs, node)
        if prefix == "math":
            function = getattr(math, callee.last, None) if callee.last not in _COSTLY else None
            if callable(function) and args and all(isinstance(a, (int, float)) for a in args):
                try:
                    return function(*args)
                except (ValueError, ArithmeticError, TypeError):
                    return UNKNOWN
            return carried(*args)
        handler = _LIBRARY.get(callee.name)
        if handler is not None:
            return handler(self, args, kwargs, node)
        return self.library_call(callee, args, kwargs, node)

    def library_call(self, callee: External, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        raise NotImplementedError

    def _builtin(self, name: str, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        handler = _BUILTINS.get(name)
        first = args[0] if args else UNKNOWN
        if handler is not None:
            return handler(self, args, kwargs, node)
        if name in ("int", "float", "abs", "round", "bool", "str", "ord", "chr", "divmod"):
            if args and all(isinstance(a, (int, float, str)) for a in args):
                try:
                    return _PLAIN[name](*args)
                except (ValueError, TypeError, ArithmeticError):
                    return UNKNOWN
            return carried(*args) if name in ("float", "abs") else UNKNOWN
        if name in ("min", "max", "sum"):
            items = self.iterate(first) if len(args) == 1 else args
            if items and all(isinstance(i, (int, float)) for i in items) and "key" not in kwargs:
                reduce: Any = {"min": min, "max": max, "sum": sum}[name]
                return reduce(items)
            return carried(*args)
        return UNKNOWN

    def _range(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if len(args) == 1:
            return Range(0, args[0], 1)
        return Range(args[0], args[1], args[2] if len(args) > 2 else 1) if args else UNKNOWN

    def _len(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        value = args[0] if args else UNKNOWN
        if isinstance(value, (List, Dict)):
            return len(value.items) if value.exact else UNKNOWN
        if isinstance(value, (tuple, str)):
            return len(value)
        if isinstance(value, Buffer) and value.shape and isinstance(value.shape[0], int):
            return value.shape[0]
        if isinstance(value, Range):
            items = self.iterate(value)
            return len(items) if items is not None and isinstance(value.stop, int) else UNKNOWN
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            method = value.cls.lookup("__len__")
            if isinstance(method, Function):
                return self.call_function(method, [value], {}, node)
        return UNKNOWN

    def _list_of(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if not args:
            return List()
        items = self.iterate(args[0])
        return List(items) if items is not None else List([], exact=False)

    def _tuple_of(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        items = self.iterate(args[0]) if args else []
        return tuple(items) if items is not None else UNKNOWN

    def _reversed(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        value = args[0] if args else UNKNOWN
        if isinstance(value, Range) and all(
            isinstance(v, int) for v in (value.start, value.stop, value.step)
        ):
            numbers = range(value.start, value.stop, value.step)[::-1]
            return Range(numbers.start, numbers.stop, numbers.step)
        items = self.iterate(value)
        return List(items[::-1]) if items is not None else List([], exact=False)

    def _enumerate(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        items = self.iterate(args[0]) if args else None
        start = args[1] if len(args) > 1 else kwargs.get("start", 0)
        if items is None or not isinstance(start, int):
            return List([], exact=False)
        return List([(k, v) for k, v in enumerate(items, start)])

    def _zip(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        columns = [self.iterate(a) for a in args]
        if any(c is None for c in columns):
            return List([], exact=False)
        return List(list(zip(*[c for c in columns if c is not None], strict=False)))

    def _map(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        items = self.iterate(args[1]) if len(args) == 2 else None
        if items is None:
            return List([], exact=False)
        return List([self.call(args[0], [i], {}, node) for i in items])

    def _dict_of(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        made = Dict()
        if args:
            if isinstance(args[0], Dict):
                made = Dict(dict(args[0].items), args[0].exact)
            else:
                pairs = self.iterate(args[0])
                if pairs is None or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
                    made.exact = False
                else:
                    made.items.update({k: v for k, v in pairs if is_known(k)})
        made.items.update(kwargs)
        return made

    def _isinstance(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if len(args) != 2 or isinstance(args[0], (Unknown, Placeholder)):
            return UNKNOWN
        value, wanted = args
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        outcome: Any = False
        for kind in kinds:
            if isinstance(kind, Class):
                if (
                    isinstance(value, Instance)
                    and isinstance(value.cls, Class)
                    and kind in value.cls.linear()
                ):
                    return True
            elif isinstance(kind, External):
                matches = {
                    "array": isinstance(value, (Buffer, View)),
                    "Tape": isinstance(value, Tape),
                    "int": isinstance(value, int),
                    "float": isinstance(value, float),
                    "str": isinstance(value, str),
                    "bool": isinstance(value, bool),
                    "list": isinstance(value, List),
                    "tuple": isinstance(value, tuple),
                    "dict": isinstance(value, Dict),
                }.get(kind.last)
                if matches:
                    return True
                if matches is None and not is_known(value):
                    outcome = UNKNOWN
            else:
                outcome = UNKNOWN
        return outcome

    def _getattr(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if len(args) < 2 or not isinstance(args[1], str):
            self.adjoints_met += 1
            return UNKNOWN
        found = self.get_attribute(args[0], args[1], node)
        if (
            isinstance(found, Unknown)
            and len(args) > 2
            and isinstance(args[0], Instance)
            and not args[0].open
        ):
            return args[2]
        return found

    def _setattr(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        self.adjoints_met += len(args) < 2 or not isinstance(args[1], str) or args[1] == "grad"
        if len(args) == 3 and isinstance(args[1], str) and isinstance(args[0], Instance):
            self.put(args[0].attributes, args[1], args[2])
        return None

    def _hasattr(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if len(args) == 2 and isinstance(args[1], str) and isinstance(args[0], Instance):
            if args[1] in args[0].attributes:
                return True
            if isinstance(args[0].cls, Class) and args[0].cls.lookup(args[1]) is not None:
                return True
            if not args[0].open:
                return False
        return UNKNOWN

    def _all_any(self, wants: bool, args: list[Any]) -> Any:
        items = self.iterate(args[0]) if args else None
        if items is None:
            return UNKNOWN
        truths = [truth(i) for i in items]
        if wants in truths:
            return wants
        return UNKNOWN if None in truths else not wants

    def _copy(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """``copy.copy``: a new container with the same references in it."""
        value = args[0] if args else UNKNOWN
        if isinstance(value, Instance):
            return Instance(value.cls, dict(value.attributes), dict(value.bindings), value.open)
        if isinstance(value, List):
            return List(list(value.items), value.exact, dict(value.bindings))
        if isinstance(value, Dict):
            return Dict(dict(value.items), value.exact)
        return value if is_known(value) or isinstance(value, tuple) else UNKNOWN

    def _deepcopy(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        return self._deep(args[0], {}, node) if args else UNKNOWN

    def _deep(self, value: Any, done: dict[int, Any], node: Any) -> Any:
        """A copy down to what cannot be copied: Warp refuses to copy an array this way."""
        if id(value) in done:
            return done[id(value)]
        if isinstance(value, Instance) and isinstance(value.cls, Class):
            method = value.cls.lookup("__deepcopy__")
            if isinstance(method, Function):
                return self.call_function(method, [value, Dict()], {}, node)
            made: Any = Instance(value.cls, open=value.open)
            done[id(value)] = made
            made.attributes.update({k: self._deep(v, done, node) for k, v in value.attributes.items()})
            return made
        if isinstance(value, List):
            made = done[id(value)] = List([], value.exact)
            made.items.extend(self._deep(v, done, node) for v in value.items)
            return made
        if isinstance(value, Dict):
            made = done[id(value)] = Dict({}, value.exact)
            made.items.update({k: self._deep(v, done, node) for k, v in value.items.items()})
            return made
        if isinstance(value, tuple):
            return tuple(self._deep(v, done, node) for v in value)
        return value if is_known(value) or isinstance(value, (Function, Class, External)) else UNKNOWN

    def _replace(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        made = self._copy(args[:1], {}, node)
        if isinstance(made, Instance):
            made.attributes.update(kwargs)
        return made

    def _field(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        return Instance(External("dataclasses.Field"), dict(kwargs))

    def _partial(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if not args:
            return UNKNOWN
        parts = {"func": args[0], "args": args[1:], "kwargs": kwargs}
        return Instance(External("functools.partial"), parts)

    def _namedtuple(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if len(args) < 2 or not isinstance(args[0], str):
            return UNKNOWN
        names = args[1].replace(",", " ").split() if isinstance(args[1], str) else self.iterate(args[1])
        if names is None or not all(isinstance(n, str) for n in names):
            return UNKNOWN
        cls = Class(args[0], None, self.frame.module, fields=dict.fromkeys(names, UNKNOWN))
        cls.is_tuple = cls.is_dataclass = True
        return cls

    def _parser(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        return Instance(External("argparse.ArgumentParser"))

    def _cycle(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        items = self.iterate(args[0]) if args else None
        return List((items * 8)[:16]) if items else List([], exact=False)

    def _next(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        first = args[0] if args else UNKNOWN
        if isinstance(first, Generator):
            self.consumed(first)
            first = first.values
        if isinstance(first, List) and first.items:
            self.touch(first.items)
            return first.items.pop(0)
        return UNKNOWN

    def _namespace(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        return Instance(External("types.SimpleNamespace"), dict(kwargs))

    def _vars(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        return Dict(dict(args[0].attributes)) if args and isinstance(args[0], Instance) else UNKNOWN

    def is_integer_type(self, dtype: Any) -> bool:
        return isinstance(dtype, External) and dtype.last in table.INTEGER_TYPES


_PLAIN: dict[str, Any] = {
    "int": int,
    "float": float,
    "abs": abs,
    "round": round,
    "bool": bool,
    "str": str,
    "ord": ord,
    "chr": chr,
    "divmod": divmod,
}
_COSTLY = frozenset({"factorial", "comb", "perm", "lcm", "prod"})
"""Functions whose result can be arbitrarily large."""
_STRING_METHODS = frozenset(
    ["split", "strip", "lower", "upper", "startswith", "endswith", "lstrip", "rstrip", "title"]
)
_BUILTINS: dict[str, Any] = {
    "range": PythonLibrary._range,
    "len": PythonLibrary._len,
    "list": PythonLibrary._list_of,
    "sorted": PythonLibrary._list_of,
    "set": PythonLibrary._list_of,
    "frozenset": PythonLibrary._list_of,
    "iter": PythonLibrary._list_of,
    "tuple": PythonLibrary._tuple_of,
    "reversed": PythonLibrary._reversed,
    "enumerate": PythonLibrary._enumerate,
    "zip": PythonLibrary._zip,
    "map": PythonLibrary._map,
    "dict": PythonLibrary._dict_of,
    "isinstance": PythonLibrary._isinstance,
    "getattr": PythonLibrary._getattr,
    "setattr": PythonLibrary._setattr,
    "hasattr": PythonLibrary._hasattr,
    "any": lambda self, args, kwargs, node: self._all_any(True, args),
    "all": lambda self, args, kwargs, node: self._all_any(False, args),
    "next": PythonLibrary._next,
    "vars": PythonLibrary._vars,
    "type": lambda self, args, kwargs, node: (
        args[0].cls if len(args) == 1 and isinstance(args[0], Instance) else UNKNOWN
    ),
    "print": lambda self, args, kwargs, node: None,
}
_LIBRARY: dict[str, Any] = {
    "copy.copy": PythonLibrary._copy,
    "copy.deepcopy": PythonLibrary._deepcopy,
    "dataclasses.replace": PythonLibrary._replace,
    "dataclasses.field": PythonLibrary._field,
    "functools.partial": PythonLibrary._partial,
    "argparse.ArgumentParser": PythonLibrary._parser,
    "itertools.cycle": PythonLibrary._cycle,
    "collections.namedtuple": PythonLibrary._namedtuple,
    "collections.deque": PythonLibrary._list_of,
    "collections.OrderedDict": PythonLibrary._dict_of,
    "types.SimpleNamespace": PythonLibrary._namespace,
}
