"""What changes arrays outside kernels: copies, resets, and writes through memory that is shared."""

from __future__ import annotations

from typing import Any

import libcst as cst

from warplint.static.host import events
from warplint.static.host.calls import Calls
from warplint.static.host.events import Binding
from warplint.static.host.values import (
    UNKNOWN,
    Adjoint,
    Buffer,
    Carried,
    Mark,
    Pointer,
    View,
    base_of,
    carried,
)
from warplint.static.kernels.summary import Site

__all__ = ["Copies"]

_SAME_MEMORY = frozenset({"reshape", "view", "ravel", "squeeze", "unsqueeze", "detach", "transpose"})
_IN_PLACE = frozenset({"fill", "sort", "put", "partition"})
_NO_CHANGE = frozenset({"requires_grad_", "detach_", "retain_grad_", "share_memory_", "pin_memory_"})


class Copies(Calls):
    """Copies and resets become events; so does every other view of an array's memory."""

    def _grad_of(self, array: Buffer | View) -> bool | None:
        if isinstance(array, View) and array.requires_grad is not None:
            return array.requires_grad
        base = base_of(array)
        return base.requires_grad if base is not None else None

    def _binding(self, array: Buffer | View, text: str, mark: Mark | None) -> Binding:
        base = base_of(array)
        assert base is not None
        return Binding(
            array,
            text or base.name or base.origin,
            only_renames(mark.statement) if mark else None,
            mark.slot if mark else None,
        )

    def _copy_call(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        destination = args[0] if args else kwargs.get("dest", UNKNOWN)
        source = args[1] if len(args) > 1 else kwargs.get("src", UNKNOWN)
        if isinstance(destination, Adjoint):
            self.seeds[destination.base.number] = destination.base
            self.lived("rewrite", node, buffer=destination.base)
            return None
        if isinstance(source, Adjoint):
            self.lived("read", node, buffer=source.base, copied=True)
        partial = any(k in kwargs for k in ("dest_offset", "src_offset", "count")) or len(args) > 2
        self._copy_arrays("wp.copy", destination, source, node, partial=partial)
        return None

    def _copy_arrays(self, name: str, destination: Any, source: Any, node: Any, *, partial: bool) -> None:
        target, origin = self.as_array(destination), self.as_array(source)
        if target is None:
            return
        changed = base_of(target)
        if not self.active and changed is not None and changed.requires_grad:
            self.lived("change", node, buffer=changed, source=base_of(origin))
        if partial:
            base = base_of(target)
            assert base is not None
            target = View(base, None, self._grad_of(target), target.element, certain=False)
        if origin is None:
            self._emit_reset(name, target, node, carried(source))
            return
        recorded = self._grad_of(target) is not False and self._grad_of(origin) is not False
        self._emit_copy(name, target, origin, node, recorded=recorded)

    def _emit_copy(self, name: str, target: Any, source: Any, node: Any, *, recorded: bool) -> None:
        effect = events.copy_effect(name, self.site(node))
        texts = _copy_texts(node)
        code = self.frame.module.source.code
        bindings = {
            "destination": self._binding(target, code(texts[0]) if texts[0] is not None else "", None),
            "source": self._binding(source, code(texts[1]) if texts[1] is not None else "", None),
        }
        self.emit("copy", effect, bindings, node, recorded=recorded)

    def _emit_reset(self, name: str, target: Buffer | View, node: Any, made_of: Any = UNKNOWN) -> None:
        effect = events.reset_effect(name, self.site(node))
        text = ""
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and name != "wp.copy":
            text = self.frame.module.source.code(node.func.value)
        binding = self._binding(target, text, None)
        host = {"destination": made_of} if isinstance(made_of, Carried) else None
        self.emit("reset", effect, {"destination": binding}, node, recorded=False, host=host)

    def written_through(self, memory: Pointer, node: Any) -> None:
        """Host memory that an array shares is changed in place."""
        effect = events.view_effect(self.site(node))
        self.emit("view", effect, {"destination": self._binding(memory.base, "", None)}, node, recorded=False)

    def _memory_method(self, memory: Pointer, name: str, node: Any) -> Any:
        """A method of numpy's or torch's view of an array."""
        if name in _SAME_MEMORY:
            return memory
        if name in _IN_PLACE or (name.endswith("_") and name not in _NO_CHANGE and name[0] != "_"):
            self.written_through(memory, node)
            return memory
        return carried(memory)

    def _to_torch(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        base = base_of(self.as_array(args[0] if args else kwargs.get("a", UNKNOWN)))
        return Pointer(base) if base is not None else UNKNOWN


def only_renames(statement: Site | None) -> Site | None:
    """The statement, if it does nothing but give existing objects other names (``a, b = b, a``)."""
    if statement is None or not isinstance(statement.node, cst.SimpleStatementLine):
        return None
    for small in statement.node.body:
        if not isinstance(small, cst.Assign):
            return None
        values = (
            [e.value for e in small.value.elements] if isinstance(small.value, cst.Tuple) else [small.value]
        )
        if not all(_is_reference(v) for v in values):
            return None
    return statement


def _is_reference(node: Any) -> bool:
    """A name, an attribute, or an element at a position that is written out."""
    if isinstance(node, cst.Attribute):
        return _is_reference(node.value)
    if isinstance(node, cst.Subscript):
        fixed = all(
            isinstance(e.slice, cst.Index) and isinstance(e.slice.value, (cst.Integer, cst.UnaryOperation))
            for e in node.slice
        )
        return fixed and _is_reference(node.value)
    return isinstance(node, cst.Name)


def _copy_texts(node: Any) -> tuple[Any, Any]:
    """Destination and source expressions of a copy, clone or assign."""
    if not isinstance(node, cst.Call):
        return None, None
    values = [a.value for a in node.args if a.keyword is None]
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "assign":
        return node.func.value, values[0] if values else None
    last = node.func.attr.value if isinstance(node.func, cst.Attribute) else getattr(node.func, "value", "")
    if last == "clone":
        return None, values[0] if values else None
    return (values[0] if values else None, values[1] if len(values) > 1 else None)
