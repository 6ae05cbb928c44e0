"""Arrays come into being: ``zeros`` and its family, ``clone``, ``array``, and memory of somebody else."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host.copies import Copies
from warplint.static.host.values import (
    UNKNOWN,
    ArrayType,
    Buffer,
    Carried,
    Class,
    External,
    List,
    Pointer,
    View,
    base_of,
    carried,
)

__all__ = ["Allocations"]

FRESH = {"zeros": 0, "ones": 0, "empty": 0, "full": 0}
LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})


class Allocations(Copies):
    """Every allocation is a buffer of its own, an alias is a view."""

    def array_type(self, dtype: Any, ndim: int | None) -> ArrayType:
        if isinstance(dtype, Class) and dtype.is_struct:
            return ArrayType("struct", ndim, dtype)
        return ArrayType("int" if self.is_integer_type(dtype) else "float", ndim)

    def _allocate(self, name: str, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """``zeros`` and its family, the ``*_like`` family and ``clone``."""
        wanted = kwargs.get("requires_grad", ...)
        if name in FRESH:
            position = 2 if name == "full" else 1
            dtype = kwargs.get("dtype", args[position] if len(args) > position else External("warp.float32"))
            shape = kwargs.get("shape", args[0] if args else UNKNOWN)
            dims = shape if isinstance(shape, tuple) else (shape,)
            if isinstance(shape, List):
                dims = tuple(shape.items)
            grad = False if wanted is ... else wanted if isinstance(wanted, bool) else None
            return self.new_buffer(
                node,
                requires_grad=grad,
                element=self._element(dtype),
                origin=name,
                ndim=len(dims),
                shape=dims,
                explicit=wanted is not ...,
                retains=kwargs.get("retain_grad") is True,
            )
        source = self.as_array(args[0] if args else kwargs.get("source", kwargs.get("src", UNKNOWN)))
        base = base_of(source)
        inherited: bool | None = None
        element = "unknown"
        if source is not None and base is not None:
            inherited = source.requires_grad if isinstance(source, View) else base.requires_grad
            element = source.element
        grad = inherited if wanted is ... or wanted is None else wanted if isinstance(wanted, bool) else None
        made = self.new_buffer(
            node,
            requires_grad=grad,
            element=element,
            origin=name,
            ndim=base.ndim if base else None,
            shape=source.shape if isinstance(source, Buffer) else None,
            explicit=wanted is not ...,
            retains=kwargs.get("retain_grad", base.retains if base else False) is True,
        )
        if name == "clone" and source is not None:
            if not self.active:
                self.lived("change", node, buffer=made, source=base)
            recorded = made.requires_grad is not False and inherited is not False
            self._emit_copy("wp.clone", made, source, node, recorded=recorded)
        return made

    def _element(self, dtype: Any) -> str:
        if self.is_integer_type(dtype):
            return "int"
        if isinstance(dtype, Class):
            return "struct"
        return "float" if isinstance(dtype, External) else "unknown"

    def _array(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """``wp.array(...)``: a type, an allocation from data, or an alias of existing memory."""
        data = args[0] if args else kwargs.get("data", ...)
        allocates = data is not ... or any(k in kwargs for k in ("shape", "ptr", "length"))
        dtype = kwargs.get("dtype", args[1] if len(args) > 1 else ...)
        if not allocates:
            ndim = kwargs.get("ndim", 1)
            return self.array_type(dtype, ndim if isinstance(ndim, int) else None)
        wanted = kwargs.get("requires_grad", ...)
        grad = False if wanted is ... else wanted if isinstance(wanted, bool) else None
        pointer = kwargs.get("ptr")
        shared = pointer if isinstance(pointer, Pointer) else data if isinstance(data, Pointer) else None
        if isinstance(data, (Buffer, View)) and kwargs.get("copy") is False:
            shared = Pointer(base_of(data))  # type: ignore[arg-type]
        if shared is not None and (pointer is not None or kwargs.get("copy") is False):
            return View(shared.base, None, grad, shared.base.element)
        source = base_of(data)
        made_of = Carried(source, self.site(node)) if source is not None else carried(data)
        # Without a dtype the element type follows the data, which may well be integers.
        element = _element_of(data) if dtype is ... else self._element(dtype)
        shape: tuple[Any, ...] | None = None
        if isinstance(data, (List, tuple)):
            shape = (len(data.items if isinstance(data, List) else data),)
        return self.new_buffer(
            node,
            requires_grad=grad,
            element=element,
            origin="array",
            shape=shape,
            explicit=wanted is not ...,
            retains=kwargs.get("retain_grad") is True,
            carried=made_of if isinstance(made_of, Carried) else None,
        )

    def _from_other(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """``from_torch``, ``from_numpy`` …: memory of somebody else."""
        wanted = kwargs.get("requires_grad", ...)
        name = node.func.attr.value if isinstance(getattr(node, "func", None), cst.Attribute) else ""
        data = args[0] if args else UNKNOWN
        base = data.base if isinstance(data, Pointer) else base_of(data)
        if name == "from_dlpack" and base is not None:  # the same memory under another name
            return View(base, None, False, base.element)
        grad: bool | None = False if name == "from_numpy" and wanted is ... else None
        if isinstance(wanted, bool):
            grad = wanted
        made_of = carried(*args[:1]) if name == "from_numpy" else UNKNOWN
        return self.new_buffer(
            node,
            requires_grad=grad,
            element="unknown",
            origin=name or "from_other",
            carried=made_of if isinstance(made_of, Carried) else None,
        )


def _element_of(data: Any) -> str:
    """The element type Warp would infer from a list of numbers."""
    first = data
    while isinstance(first, (List, tuple)):
        items = first.items if isinstance(first, List) else first
        if not items:
            return "unknown"
        first = items[0]
    if isinstance(first, float):
        return "float"
    return "int" if isinstance(first, int) else "unknown"
