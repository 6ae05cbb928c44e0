"""What names, attributes and subscripts stand for."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host.core import Core
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
    Scope,
    Tape,
    Unknown,
    View,
    base_of,
    carried,
)

__all__ = ["Attributes"]

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
_DTYPES = {"float": External("warp.float32"), "int": External("warp.int32")}
_ARRAY_METHODS = frozenset(
    {"zero_", "fill_", "assign", "numpy", "flatten", "reshape", "view", "contiguous", "to", "transpose"}
)
_LIBRARY_METHODS = frozenset(
    {"state", "control", "contacts", "finalize", "step", "simulate", "collide", "clear_forces", "eval_fk"}
)


class Attributes(Core):
    """Access to what exists already: nothing is computed here."""

    def evaluate(self, node: Any) -> Any:
        """The value of any expression."""
        raise NotImplementedError

    def iterate(self, value: Any) -> list[Any] | None:
        """The elements of an iterable, or None if they are not known."""
        raise NotImplementedError

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
        self.adjoints_met += name in ("grad", "gradients")
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
