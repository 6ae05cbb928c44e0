"""Summaries of what lies outside the tree: which of Warp's functions and methods does what.

Torch, numpy, rendering and everything else that is not named here returns an unknown value.
"""

from __future__ import annotations

from typing import Any

from warplint.static.host.allocations import FRESH, LIKE
from warplint.static.host.tapes import Tapes
from warplint.static.host.values import (
    UNKNOWN,
    Adjoint,
    Buffer,
    Carried,
    Command,
    External,
    HostGradient,
    Instance,
    Placeholder,
    Pointer,
    Tape,
    View,
    base_of,
    carried,
)

__all__ = ["Interpreter"]

_SAME_ARRAY = frozenset({"flatten", "reshape", "view", "contiguous", "to", "transpose", "squeeze", "astype"})
_SIMULATION = ("newton", "warp.sim", "mujoco_warp")


class Interpreter(Tapes):
    """The complete interpreter."""

    def library_call(self, callee: External, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        name = callee.last
        if callee.name.startswith(_SIMULATION):
            return self._simulation_call(callee, args, kwargs, node)
        if not callee.name.startswith("warp"):
            self.adjoints_met += any(isinstance(a, (Buffer, View, Instance)) for a in args)
            target = args[0] if name == "copyto" and args else kwargs.get("out")
            if isinstance(target, Pointer):
                self.written_through(target, node)
            return carried(*args, *kwargs.values())
        if name in FRESH or name in LIKE or name == "clone":
            return self._allocate(name, args, kwargs, node)
        if name in ("launch", "launch_tiled"):
            return self._launch(name, args, kwargs, node)
        if name == "copy":
            return self._copy_call(args, kwargs, node)
        handler = _WARP.get(name)
        if handler is not None:
            return handler(self, args, kwargs, node)
        if name in ("array1d", "array2d", "array3d", "array4d", "indexedarray", "fabricarray"):
            if args or "data" in kwargs or "shape" in kwargs or "ptr" in kwargs:
                return self._array(args, kwargs, node)
            ndim = int(name[5]) if name[5].isdigit() else None
            return self.array_type(kwargs.get("dtype", UNKNOWN), ndim)
        return carried(*args)

    def array_method(
        self, receiver: Any, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        if isinstance(receiver, Tape):
            return self._tape_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Pointer):
            return self._memory_method(receiver, name, node)
        if isinstance(receiver, Carried):
            return receiver
        if isinstance(receiver, Command):
            return self._command_method(receiver, name, args, kwargs, node)
        if isinstance(receiver, Adjoint):
            if name == "zero_":
                self.adjoints_met -= 1  # whatever it is, it is no seed
            if name in ("fill_", "assign"):
                self.seeds[receiver.base.number] = receiver.base
            if name in ("zero_", "fill_", "assign"):
                kind = "rewrite" if name == "assign" else "clear"
                self.lived(kind, node, buffer=receiver.base)
            if name == "numpy":
                self.lived("read", node, buffer=receiver.base)
                return HostGradient(receiver.base, self.site(node))
            return UNKNOWN
        if isinstance(receiver, Placeholder):
            if receiver.library:
                return self._simulation_method(receiver, name, args, kwargs, node)
            if name == "backward":
                return UNKNOWN
        array = self.as_array(receiver)
        if array is None:
            return UNKNOWN
        if array in self.life.manual and name in ("zero_", "fill_", "assign", "numpy"):
            self.lived("read" if name == "numpy" else "clear", node, buffer=base_of(array), copied=True)
        if name in ("zero_", "fill_"):
            self._emit_reset(f"{name}()", array, node, carried(*args))
            return None
        if name == "assign":
            self._copy_arrays("assign()", array, args[0] if args else UNKNOWN, node, partial=False)
            return None
        if name in _SAME_ARRAY:
            return array
        if name == "numpy":
            base = base_of(array)
            return Pointer(base, self.site(node)) if base is not None else UNKNOWN
        if name == "cptr":
            base = base_of(array)
            return Pointer(base) if base is not None else UNKNOWN
        if name == "list":
            base = base_of(array)
            return Carried(base, self.site(node)) if base is not None else UNKNOWN
        return UNKNOWN


_WARP: dict[str, Any] = {
    "array": Interpreter._array,
    "Tape": Interpreter._tape,
    "array_sum": Interpreter._reduction,
    "array_inner": Interpreter._reduction,
    "array_scan": Interpreter._reduction,
    "set_module_options": Interpreter._module_options,
    "constant": lambda self, args, kwargs, node: args[0] if args else UNKNOWN,
    "ScopedCapture": lambda self, args, kwargs, node: Instance(External("warp.ScopedCapture"), open=True),
    "capture_begin": Interpreter._captured,
    "capture_end": Interpreter._captured,
    "capture_launch": Interpreter._captured,
    "map": Interpreter._map,
    "to_torch": Interpreter._to_torch,
    "to_dlpack": Interpreter._to_torch,
    "from_torch": Interpreter._from_other,
    "from_numpy": Interpreter._from_other,
    "from_jax": Interpreter._from_other,
    "from_dlpack": Interpreter._from_other,
    "from_paddle": Interpreter._from_other,
}
