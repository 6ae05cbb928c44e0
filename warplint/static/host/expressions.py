"""Evaluation of expressions that are not calls."""

from __future__ import annotations

import operator
from typing import Any

import libcst as cst

from warplint.static.host.core import Core, is_known, merge, truth
from warplint.static.host.values import (
    UNKNOWN,
    Adjoint,
    ArrayType,
    Bound,
    Buffer,
    Carried,
    Class,
    Command,
    Dict,
    External,
    Function,
    HostGradient,
    Instance,
    List,
    Mark,
    Module,
    Placeholder,
    Pointer,
    Range,
    Scope,
    Tape,
    Unknown,
    View,
    base_of,
    carried,
)

__all__ = ["Expressions"]

_MAX_ITEMS = 2000
UNKNOWN_LENGTH = 5
"""Elements a comprehension makes when nothing tells how many there are."""

_BINARY: dict[str, Any] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulo": operator.mod,
    "Power": operator.pow,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
    "LeftShift": operator.lshift,
    "RightShift": operator.rshift,
}
_COMPARE: dict[str, Any] = {
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
}
_BUILTIN_NAMES = frozenset(
    word
    for word in """
    abs all any bool bytes callable classmethod dict divmod enumerate filter float format frozenset
    getattr hasattr hash id input int isinstance issubclass iter len list map max min next object open
    ord chr pow print property range repr reversed round set setattr slice sorted staticmethod str sum
    super tuple type vars zip Exception ValueError RuntimeError NotImplementedError TypeError
    KeyError IndexError StopIteration AssertionError OSError ImportError delattr globals locals exit
    """.splitlines()
    for word in word.split()
)
_NUMERIC = (int, float)


class Expressions(Core):
    """Names, attributes, subscripts, operators, displays and comprehensions."""

    def evaluate(self, node: Any) -> Any:
        self.step()
        handler = _HANDLERS.get(type(node))
        return handler(self, node) if handler is not None else UNKNOWN

    # -- names and attributes -----------------------------------------------------------------

    def lookup(self, name: str) -> Any:
        frame = self.frame
        scope: Scope | None = frame.module.scope if name in frame.scope.global_names else frame.scope
        found = scope.find(name) if scope is not None else None
        if found is not None:
            return found.names[name]
        if name in frame.module.scope.names:
            return frame.module.scope.names[name]
        if name in _BUILTIN_NAMES:
            return External(f"builtins.{name}")
        return UNKNOWN

    def _name(self, node: cst.Name) -> Any:
        constants: dict[str, Any] = {"True": True, "False": False, "None": None}
        if node.value in constants:
            return constants[node.value]
        value = self.lookup(node.value)
        if isinstance(value, HostGradient):
            self.lived("use", node, buffer=value.base, read=value.site)
        return value

    def _attribute(self, node: cst.Attribute) -> Any:
        return self.get_attribute(self.evaluate(node.value), node.attr.value, node)

    def get_attribute(self, owner: Any, name: str, node: Any = None) -> Any:
        if isinstance(owner, External):
            return External(f"{owner.name}.{name}")
        if isinstance(owner, Module):
            return self.module_attribute(owner, name)
        if isinstance(owner, Instance):
            return self.instance_attribute(owner, name, node)
        if isinstance(owner, Class):
            value = owner.lookup(name)
            if isinstance(value, Function) and value.binding == "class":
                return Bound(owner, name, value)
            if value is None:
                if name == "apply" and owner.derives_from("Function"):
                    return Bound(owner, name)
                known = None if owner.has(name) else UNKNOWN
                return owner.name if name == "__name__" else known
            return value
        if isinstance(owner, (Buffer, View)):
            return self.array_attribute(owner, name, node)
        if isinstance(owner, Placeholder):
            return self.placeholder_attribute(owner, name)
        if isinstance(owner, Adjoint):
            return Bound(owner, name)
        if isinstance(owner, Pointer) and name in ("T", "data"):
            return owner
        if isinstance(owner, HostGradient) and name in ("copy", "astype", "tolist"):
            self.lived("read", node, buffer=owner.base, copied=True)
        if isinstance(owner, (List, Dict, Tape, str, Pointer, Carried, Command)):
            return Bound(owner, name)
        if isinstance(owner, Function):
            return owner.attributes.get(name, owner.name if name == "__name__" else UNKNOWN)
        return UNKNOWN

    def module_attribute(self, module: Module, name: str) -> Any:
        if name in module.scope.names:
            return module.scope.names[name]
        file = self.project.resolver.resolve(name, 1, module.source.file.path, self.script.path)
        if file is not None and module.source.file.path.name == "__init__.py":
            loaded = self.import_module(file)
            if loaded is not None:
                return loaded
        return UNKNOWN

    def instance_attribute(self, owner: Instance, name: str, node: Any) -> Any:
        if name in owner.attributes:
            return owner.attributes[name]
        if isinstance(owner.cls, Class):
            value = owner.cls.lookup(name)
            if isinstance(value, Function):
                if value.binding == "property":
                    return self.call_function(value, [owner], {}, node)
                if value.binding == "cached":
                    result = self.call_function(value, [owner], {}, node)
                    self.put(owner.attributes, name, result)
                    return result
                if value.binding == "static":
                    return value
                receiver = owner.cls if value.binding == "class" else owner
                return Bound(receiver, name, value)
            if value is not None or owner.cls.has(name):
                return value
            if name == "__class__":
                return owner.cls
            getter = owner.cls.lookup("__getattr__")
            if isinstance(getter, Function):
                return self.call_function(getter, [owner, name], {}, node)
        if isinstance(owner.cls, External):
            return Bound(owner, name)
        return UNKNOWN

    def array_attribute(self, array: Buffer | View, name: str, node: Any) -> Any:
        base = base_of(array)
        assert base is not None
        if name == "grad":
            base.consumed = True
            return Adjoint(base) if base.requires_grad is not False else None
        if name in ("ptr", "__array_interface__", "__cuda_array_interface__"):
            return Pointer(base)
        if name == "requires_grad":
            known = array.requires_grad if isinstance(array, View) else base.requires_grad
            return UNKNOWN if known is None else known
        if name == "shape":
            shape = base.shape if isinstance(array, Buffer) else None
            return tuple(shape) if shape is not None else UNKNOWN
        if name in ("size", "dtype", "device", "ndim", "strides", "capacity", "is_contiguous"):
            shape = base.shape if isinstance(array, Buffer) else None
            if name == "size" and shape is not None and all(isinstance(s, int) for s in shape):
                total = 1
                for s in shape:
                    total *= s
                return total
            if name == "dtype":
                return _DTYPES.get(base.element, UNKNOWN)
            return UNKNOWN
        return Bound(array, name)

    def placeholder_attribute(self, owner: Placeholder, name: str) -> Any:
        if owner.buffer is not None:
            return self.array_attribute(owner.buffer, name, None)
        if "<tape>" in owner.children and name in ("backward", "zero", "reset", "record_func"):
            return Bound(owner.children["<tape>"], name)
        if name in _ARRAY_METHODS or (owner.library and name in _LIBRARY_METHODS):
            return Bound(owner, name)
        if name in ("shape", "size", "dtype", "device", "ndim"):
            return UNKNOWN
        if name == "grad":
            array = self.as_array(owner)
            assert isinstance(array, Buffer)
            return Adjoint(array)
        return self.child(owner, name, f"{owner.name}.{name}")

    def child(self, owner: Placeholder, key: Any, name: str) -> Placeholder:
        if key not in owner.children:
            owner.children[key] = Placeholder(name, owner.library)
        made: Placeholder = owner.children[key]
        return made

    def origin(self, node: Any) -> Mark | None:
        """How the object an expression names came to that name (see ``Mark``)."""
        if isinstance(node, cst.Name):
            scope = self.frame.scope.find(node.value)
            return scope.bindings.get(node.value) if scope is not None else None
        if isinstance(node, cst.Attribute):
            owner = self.evaluate(node.value)
            if isinstance(owner, Instance) and node.attr.value in owner.bindings:
                return owner.bindings[node.attr.value]
            return self.origin(node.value)
        if isinstance(node, cst.Subscript):
            owner = self.evaluate(node.value)
            index = self._index(node)
            if isinstance(owner, List) and isinstance(index, int):
                position = index + len(owner.items) if index < 0 else index
                mark = owner.bindings.get(position)
                return Mark(mark.statement if mark else None, (owner, position))
            return self.origin(node.value)
        return None

    # -- subscripts ---------------------------------------------------------------------------

    def _index(self, node: cst.Subscript) -> Any:
        values = [self._index_element(e.slice) for e in node.slice]
        return values[0] if len(values) == 1 else tuple(values)

    def _index_element(self, element: Any) -> Any:
        if isinstance(element, cst.Index):
            return self.evaluate(element.value)
        parts = (element.lower, element.upper, element.step)
        values = [None if p is None else self.evaluate(p) for p in parts]
        if any(v is not None and not isinstance(v, int) for v in values):
            return Unknown  # a slice with unknown bounds
        return slice(*values)

    def _subscript(self, node: cst.Subscript) -> Any:
        owner = self.evaluate(node.value)
        if isinstance(owner, External) and owner.last in ("array", "array1d", "Array"):
            return self.array_type_subscript(node)
        return self.get_item(owner, self._index(node), node)

    def array_type_subscript(self, node: cst.Subscript) -> Any:
        """``wp.array[float]``, ``wp.array[wp.vec3, Literal[2]]``."""
        first = node.slice[0].slice
        dtype = self.evaluate(first.value) if isinstance(first, cst.Index) else UNKNOWN
        return self.array_type(dtype, None if len(node.slice) > 1 else 1)

    def array_type(self, dtype: Any, ndim: int | None) -> ArrayType:
        raise NotImplementedError

    def get_item(self, owner: Any, index: Any, node: Any) -> Any:
        if isinstance(owner, Instance) and isinstance(owner.cls, Class) and owner.cls.is_tuple:
            owner = tuple(self.iterate(owner) or ())
        if isinstance(owner, (List, tuple)):
            items = owner.items if isinstance(owner, List) else owner
            if isinstance(index, bool) or not isinstance(index, (int, slice)):
                return UNKNOWN
            try:
                found = items[index]
            except IndexError:
                return UNKNOWN
            if isinstance(index, slice):
                return List(list(found)) if isinstance(owner, List) else tuple(found)
            return found
        if isinstance(owner, Dict):
            try:
                return owner.items.get(index, UNKNOWN)
            except TypeError:
                return UNKNOWN
        if isinstance(owner, (Buffer, View)):
            return self.array_view(owner, index)
        if isinstance(owner, Pointer):  # a part of host memory is a view of it, one element a number
            return owner if isinstance(index, slice) or index is Unknown else carried(owner)
        if isinstance(owner, Carried):
            return owner
        if isinstance(owner, str) and isinstance(index, (int, slice)):
            try:
                return owner[index]
            except IndexError:
                return UNKNOWN
        if isinstance(owner, Placeholder):
            if owner.buffer is not None:
                return self.array_view(owner.buffer, index)
            if isinstance(index, (int, str)):
                return self.child(owner, index, f"{owner.name}[{index!r}]")
            return UNKNOWN
        if isinstance(owner, Instance) and isinstance(owner.cls, Class):
            method = owner.cls.lookup("__getitem__")
            if isinstance(method, Function) and index is not Unknown:
                return self.call_function(method, [owner, index], {}, node)
        return UNKNOWN

    def array_view(self, array: Buffer | View, index: Any) -> Any:
        base = base_of(array)
        assert base is not None
        element = array.element
        if isinstance(array, View) and array.region is not None:
            return View(base, array.region, array.requires_grad, element, array.certain, None)
        first = index[0] if isinstance(index, tuple) and index else index
        length = base.shape[0] if base.shape and isinstance(base.shape[0], int) else None
        region = None
        certain = True
        if isinstance(first, int) and not isinstance(first, bool):
            start = first + length if first < 0 and length else first
            region = (start, start + 1)
            certain = start >= 0
        elif isinstance(first, slice):
            if first == slice(None, None, None):
                certain = not isinstance(index, tuple)
            else:
                certain = first.step in (None, 1)
                start = first.start or 0
                stop = first.stop if first.stop is not None else (length if length else 1 << 60)
                if (start < 0 or stop < 0) and not length:
                    certain = False
                elif length:
                    start, stop, _ = slice(start, stop).indices(length)
                region = (start, stop) if certain else None
        else:
            certain = False
        return View(base, region, array.requires_grad, element, certain, None)

    # -- operators ----------------------------------------------------------------------------

    def _binary(self, node: cst.BinaryOperation) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.operate(type(node.operator).__name__, left, right, node)

    def operate(self, name: str, left: Any, right: Any, node: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            if name == "Add" and isinstance(left, str) and isinstance(right, str):
                return (left + right)[:1000]
            return UNKNOWN
        if isinstance(left, _NUMERIC) and isinstance(right, _NUMERIC):
            return _arithmetic(name, left, right)
        if name == "Add" and isinstance(left, tuple) and isinstance(right, tuple):
            return left + right
        if name == "Add" and isinstance(left, List) and isinstance(right, List):
            return List([*left.items, *right.items][:_MAX_ITEMS], left.exact and right.exact)
        if name == "Multiply":
            sequence, count = (left, right) if isinstance(left, (List, tuple)) else (right, left)
            if isinstance(sequence, (List, tuple)):
                times = count if isinstance(count, int) else UNKNOWN_LENGTH
                items = list(sequence.items if isinstance(sequence, List) else sequence)
                items = (items * max(0, min(times, _MAX_ITEMS)))[:_MAX_ITEMS]
                return List(items) if isinstance(sequence, List) else tuple(items)
        made_of = carried(left, right)
        if made_of is not UNKNOWN:
            return made_of
        if base_of(left) is not None or base_of(right) is not None:
            return self.array_operator(name, left, right, node)
        return UNKNOWN

    def array_operator(self, name: str, left: Any, right: Any, node: Any) -> Any:
        raise NotImplementedError

    def _unary(self, node: cst.UnaryOperation) -> Any:
        value = self.evaluate(node.expression)
        if isinstance(node.operator, cst.Not):
            known = truth(value)
            return UNKNOWN if known is None else not known
        if isinstance(value, _NUMERIC):
            if isinstance(node.operator, cst.Minus):
                return -value
            if isinstance(node.operator, cst.Plus):
                return value
        return carried(value)

    def _boolean(self, node: cst.BooleanOperation) -> Any:
        left = self.evaluate(node.left)
        known = truth(left)
        wants = isinstance(node.operator, cst.Or)
        if known is None:
            right = self.evaluate(node.right)
            right_truth = truth(right)
            if right_truth is wants and isinstance(right, bool):
                return right  # ``unknown or True``
            return merge(left, right)
        return left if known is wants else self.evaluate(node.right)

    def _comparison(self, node: cst.Comparison) -> Any:
        left = self.evaluate(node.left)
        result: Any = True
        for target in node.comparisons:
            right = self.evaluate(target.comparator)
            outcome = self.compare(type(target.operator).__name__, left, right)
            if outcome is False:
                return False
            if outcome is not True:
                result = UNKNOWN
            left = right
        return result

    def compare(self, name: str, left: Any, right: Any) -> Any:
        if name in ("Is", "IsNot"):
            if isinstance(left, (Unknown, Placeholder)) or isinstance(right, (Unknown, Placeholder)):
                return UNKNOWN
            same = left is right or (is_known(left) and is_known(right) and left == right)
            return same if name == "Is" else not same
        if name in ("In", "NotIn"):
            inside = self._contains(right, left)
            if isinstance(inside, bool):
                return inside if name == "In" else not inside
            return UNKNOWN
        plain = (is_known(left) or isinstance(left, tuple)) and (is_known(right) or isinstance(right, tuple))
        if plain and name in _COMPARE:
            if _has_unknown(left) or _has_unknown(right):
                return UNKNOWN
            try:
                return bool(_COMPARE[name](left, right))
            except TypeError:
                return UNKNOWN
        if name in ("Equal", "NotEqual") and isinstance(left, External) and isinstance(right, External):
            return (left.name == right.name) is (name == "Equal")
        if name in ("Equal", "NotEqual") and (left is None or right is None):
            other = right if left is None else left
            if not isinstance(other, (Unknown, Placeholder)):
                return name == "NotEqual"
        return UNKNOWN

    def _contains(self, container: Any, item: Any) -> Any:
        if isinstance(container, str) and isinstance(item, str):
            return item in container
        if isinstance(container, Dict) and container.exact and is_known(item):
            return item in container.items
        items = container.items if isinstance(container, List) and container.exact else container
        if isinstance(items, (list, tuple)) and is_known(item) and all(is_known(i) for i in items):
            return item in items
        return UNKNOWN

    def _ternary(self, node: cst.IfExp) -> Any:
        known = truth(self.evaluate(node.test))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse)
        return merge(self.evaluate(node.body), self.evaluate(node.orelse))

    # -- displays -----------------------------------------------------------------------------

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
                if isinstance(key, (Unknown, tuple)) and _has_unknown(key):
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
            return list(numbers) if len(numbers) <= _MAX_ITEMS else None
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
            items = [UNKNOWN] * UNKNOWN_LENGTH if not isinstance(iterable, Range) else list(range(_MAX_ITEMS))
        for turn, item in enumerate(items[:_MAX_ITEMS]):
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


def _arithmetic(name: str, left: Any, right: Any) -> Any:
    """Concrete arithmetic, kept away from numbers that would take time or memory to make."""
    function = _BINARY.get(name)
    if function is None or any(isinstance(v, int) and v.bit_length() > 256 for v in (left, right)):
        return UNKNOWN
    if name in ("Power", "LeftShift") and abs(right) > 64:
        return UNKNOWN
    try:
        return function(left, right)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


def _has_unknown(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_unknown(v) for v in value)
    return not is_known(value)


_DTYPES = {"float": External("warp.float32"), "int": External("warp.int32")}
_ARRAY_METHODS = frozenset(
    {"zero_", "fill_", "assign", "numpy", "flatten", "reshape", "view", "contiguous", "to", "transpose"}
)
_LIBRARY_METHODS = frozenset(
    {"state", "control", "contacts", "finalize", "step", "simulate", "collide", "clear_forces", "eval_fk"}
)

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
