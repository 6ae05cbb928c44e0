"""Summaries of what lies outside the tree: Warp's own functions and arrays, simulation libraries.

Torch, numpy, rendering and everything else that is not named here returns an unknown value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from warplint.static.host import events
from warplint.static.host.calls import Calls
from warplint.static.host.core import Frame, dotted
from warplint.static.host.events import ONE_THREAD, Backward, Binding
from warplint.static.host.values import (
    UNKNOWN,
    Adjoint,
    ArrayType,
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
    Placeholder,
    Pointer,
    Tape,
    View,
    base_of,
    carried,
)
from warplint.static.kernels.analysis import analyze_kernel
from warplint.static.kernels.summary import KernelSummary, Site

__all__ = ["Interpreter"]

_FRESH = {"zeros": 0, "ones": 0, "empty": 0, "full": 0}
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})
_LAUNCH = ("kernel", "dim", "inputs", "outputs", "adj_inputs", "adj_outputs", "device", "stream", "adjoint")
_LINEAR_OPERATORS = frozenset({"Add", "Subtract"})
_SAME_ARRAY = frozenset({"flatten", "reshape", "view", "contiguous", "to", "transpose", "squeeze", "astype"})
_SIMULATION = ("newton", "warp.sim", "mujoco_warp")
_SAME_MEMORY = frozenset({"reshape", "view", "ravel", "squeeze", "unsqueeze", "detach", "transpose"})
_IN_PLACE = frozenset({"fill", "sort", "put", "partition"})
_NO_CHANGE = frozenset({"requires_grad_", "detach_", "retain_grad_", "share_memory_", "pin_memory_"})
_STATE_FIELDS = ("particle_q", "particle_qd", "body_q", "body_qd", "joint_q", "joint_qd")


class Interpreter(Calls):
    """The complete interpreter."""

    # -- the host side of kernels -----------------------------------------------------------------

    def resolve(self, expression: cst.BaseExpression, function: Function) -> Any:
        """The value of an expression that stands in a kernel but belongs to Python."""
        self.frames.append(Frame(function.scope, function.module))
        try:
            return self.evaluate_annotation(expression)
        finally:
            self.frames.pop()

    def summary(self, function: Function) -> KernelSummary:
        key = (id(function.node), id(function.scope))
        if key not in self.summaries:
            found = analyze_kernel(function, self)
            switch = self._backward_switch(function)
            if switch is not None:
                found = replace(found, backward=False, switch=switch)
            self.summaries[key] = found
        return self.summaries[key]

    def _backward_switch(self, function: Function) -> Site | None:
        """The statement that turns a kernel's backward code off, if its own decorator is silent."""
        if function.kind != "kernel" or "enable_backward" in function.options:
            return None
        module = function.options.get("module")
        name = module if isinstance(module, str) else function.module.name
        return self.no_backward.get(name) or function.module.no_backward

    def array_type(self, dtype: Any, ndim: int | None) -> ArrayType:
        if isinstance(dtype, Class) and dtype.is_struct:
            return ArrayType("struct", ndim, dtype)
        return ArrayType("int" if self.is_integer_type(dtype) else "float", ndim)

    # -- calls into warp ----------------------------------------------------------------------

    def library_call(self, callee: External, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        name = callee.last
        if callee.name.startswith(_SIMULATION):
            return self._simulation_call(callee, args, kwargs, node)
        if not callee.name.startswith("warp"):
            target = args[0] if name == "copyto" and args else kwargs.get("out")
            if isinstance(target, Pointer):
                self.written_through(target, node)
            return carried(*args, *kwargs.values())
        if name in _FRESH or name in _LIKE or name == "clone":
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

    def _allocate(self, name: str, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """``zeros`` and its family, the ``*_like`` family and ``clone``."""
        wanted = kwargs.get("requires_grad", ...)
        if name in _FRESH:
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

    def _tape(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        self.events += 1
        return Tape(self.events, self.site(node))

    # -- launches -----------------------------------------------------------------------------

    def _launch(self, name: str, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        given = dict(zip(_LAUNCH, args, strict=False))
        given.update(kwargs)
        if given.get("adjoint") is True:
            self._manual_adjoint(given.get("adj_inputs", ()), node)
            return None
        if given.pop("record_cmd", False) is True:
            return Command(given)
        return self._carry_out(given, node)

    def _carry_out(self, given: dict[str, Any], node: Any, *, tape_sees: bool = True) -> Any:
        """A launch with its arguments by name; a prepared one reaches no tape."""
        kernel = given.get("kernel", UNKNOWN)
        if not isinstance(kernel, Function) or kernel.kind != "kernel":
            if self.active:
                self.skip(f"{self.frame.module.source.display}: launch of an unknown kernel")
            return UNKNOWN
        self.called.add(kernel.node)
        inputs = self.iterate(given.get("inputs", ()))
        outputs = self.iterate(given.get("outputs", ()))
        if inputs is None or outputs is None:
            self.skip(f"{self.frame.module.source.display}: launch with unknown arguments")
            return UNKNOWN
        values = [*inputs, *outputs]
        if not self.active:
            self._seed_by_launch(kernel, values)
            self._update_by_launch(kernel, values, node)
            if not self.waiting and not self._may_cut(values):
                return None
        nodes = [
            *_argument_nodes(node, "inputs", len(inputs)),
            *_argument_nodes(node, "outputs", len(outputs)),
        ]
        summary = self.summary(kernel)
        bindings: dict[str, Binding] = {}
        arguments: dict[str, Any] = {}
        if "block_dim" not in given and _is_one(given.get("dim")):
            arguments[ONE_THREAD] = 1
        host: dict[str, Carried] = {}
        for parameter, value, source in zip(summary.parameters, values, nodes, strict=False):
            if parameter.kind == "scalar" and isinstance(value, (Carried, Pointer)) and not parameter.integer:
                made_of = carried(value)
                if isinstance(made_of, Carried):
                    host[parameter.name] = made_of
            elif isinstance(value, int) and not isinstance(value, bool):
                arguments[parameter.name] = value
            elif parameter.kind != "scalar":
                self._bind_paths(summary, parameter.name, value, source, bindings)
            if isinstance(value, Instance):
                numbers = [(f"{parameter.name}.{k}", v) for k, v in value.attributes.items()]
                body = kernel.module.source.code(kernel.node, limit=1 << 20)
                host.update((k, v) for k, v in numbers if isinstance(v, Carried) and k in body)
        recorded = tape_sees and given.get("record_tape") is not False
        self.emit("launch", summary, bindings, node, arguments, recorded, host)
        if recorded and self.active:
            names = [parameter.name for parameter in summary.parameters]
            for name, value in zip(names, values, strict=False):
                if isinstance(value, Instance) and isinstance(value.cls, Class) and value.cls.is_struct:
                    self.hold(value, name)
            for key, first in (("inputs", 0), ("outputs", len(inputs))):
                if isinstance(given.get(key), List):
                    self.hold(given[key], names[first:])
        return None

    def _manual_adjoint(self, given: Any, node: Any) -> None:
        """``adjoint=True``: the launch adds to every array in ``adj_inputs``."""
        values = self.iterate(given) or []
        nodes = _argument_nodes(node, "adj_inputs", len(values))
        for value, source in zip(values, nodes, strict=True):
            base = base_of(value)
            if base is not None:
                self.life.manual.add(base)
                self.lived("adjoint", source if source is not None else node, buffer=base)

    def _may_cut(self, values: list[Any]) -> bool:
        """Whether a launch off the tape may stand between an optimized array and a tape."""
        if any(isinstance(v, Adjoint) for v in values):
            return False  # the optimizer's own
        if any(isinstance(v, (Instance, Carried)) for v in values):
            return True
        bases = [base_of(v) for v in values]
        return any(b is not None and b.requires_grad is not False for b in bases)

    def _bind_paths(
        self, summary: KernelSummary, name: str, value: Any, source: Any, bindings: dict[str, Binding]
    ) -> None:
        mark = self.origin(source) if source is not None else None
        text = self.frame.module.source.code(source) if source is not None else ""
        for path in summary.paths:
            if path != name and not path.startswith(f"{name}."):
                continue
            found = value
            for part in path.split(".")[1:]:
                found = self.get_attribute(found, part)
            array = self.as_array(found)
            if array is not None:
                spelled = text + path[len(name) :] if text else ""
                bindings[path] = self._binding(array, spelled, mark)

    def _binding(self, array: Buffer | View, text: str, mark: Mark | None) -> Binding:
        base = base_of(array)
        assert base is not None
        return Binding(
            array,
            text or base.name or base.origin,
            only_renames(mark.statement) if mark else None,
            mark.slot if mark else None,
        )

    def _seed_by_launch(self, kernel: Function, values: list[Any]) -> None:
        """A kernel off the tape that writes some ``x.grad`` sets a seed."""
        if not any(isinstance(v, Adjoint) for v in values):
            return
        summary = self.summary(kernel)
        for parameter, value in zip(summary.parameters, values, strict=False):
            if isinstance(value, Adjoint) and summary.writes_of(parameter.name):
                self.seeds[value.base.number] = value.base

    def _update_by_launch(self, kernel: Function, values: list[Any], node: Any) -> None:
        """A kernel off the tape that is handed gradients, or changes arrays that have one."""
        manual = self.life.manual
        held = [v for v in values if isinstance(v, Adjoint) or (isinstance(v, Buffer) and v in manual)]
        if not held and not any(b.requires_grad for b in map(base_of, values) if b is not None):
            return
        summary = self.summary(kernel)
        pairs = list(zip(summary.parameters, values, strict=False))
        for parameter, value in pairs:
            if any(value is v for v in held):
                gradient = value.base if isinstance(value, Adjoint) else value
                self.lived(_use_of_gradient(summary, parameter.name), node, buffer=gradient, copied=True)
        for parameter, value in pairs:
            base = base_of(value)
            if base is not None and base.requires_grad and summary.writes_of(parameter.name):
                self.lived("change", node, buffer=base)

    def _map(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if not isinstance(node, cst.Call) or not args:
            return UNKNOWN
        arrays = [a for a in (self.as_array(v) for v in args[1:]) if a is not None]
        out = self.as_array(kwargs.get("out"))
        return self._elementwise("wp.map", arrays, out, node, linear=False)

    def _elementwise(
        self, name: str, arrays: list[Buffer | View], out: Buffer | View | None, node: Any, *, linear: bool
    ) -> Any:
        if not arrays:
            return UNKNOWN
        flags = [self._grad_of(a) for a in arrays]
        grad: bool | None = True if True in flags else None if None in flags else False
        made = out or self.new_buffer(node, requires_grad=grad, element=arrays[0].element, origin=name)
        effect = events.elementwise_effect(name, self.site(node), len(arrays), linear=linear)
        bindings = {f"in{k}": self._binding(a, "", None) for k, a in enumerate(arrays)}
        bindings["out"] = self._binding(made, "", None)
        self.emit("launch", effect, bindings, node)
        return made

    def array_operator(self, name: str, left: Any, right: Any, node: Any) -> Any:
        arrays = [a for a in (left, right) if isinstance(a, (Buffer, View))]
        linear = name in _LINEAR_OPERATORS or (len(arrays) < 2 and name in ("Multiply", "Divide"))
        return self._elementwise(f"array {name.lower()}", arrays, None, node, linear=linear)

    def _reduction(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """Sums and scans of ``warp.utils``, which no tape sees; without ``out`` a number comes back."""
        name = dotted(node.func).rpartition(".")[2] if isinstance(node, cst.Call) else "array_sum"
        count = 2 if name == "array_inner" else 1
        out = kwargs.get("out", kwargs.get("out_array", args[count] if len(args) > count else None))
        arrays = [a for a in (self.as_array(v) for v in args[:count]) if a is not None]
        if not arrays:
            return UNKNOWN
        target = self.as_array(out)
        if target is None:
            base = base_of(arrays[0])
            return Carried(base, self.site(node)) if base is not None and out is None else UNKNOWN
        effect = events.elementwise_effect(
            f"wp.utils.{name}", self.site(node), len(arrays), linear=count == 1
        )
        bindings = {f"in{k}": self._binding(a, "", None) for k, a in enumerate(arrays)}
        bindings["out"] = self._binding(target, "", None)
        self.emit("launch", effect, bindings, node, recorded=False)
        return out

    def _captured(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        """A graph is recorded or replayed: gradients change when nobody can see it."""
        self.lived("forget", node)
        return UNKNOWN

    def _module_options(self, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        options = args[0] if args else kwargs.get("options")
        module = kwargs.get("module", args[1] if len(args) > 1 else None)
        if isinstance(options, Dict) and "enable_backward" in options.items:
            key = module if isinstance(module, str) else self.frame.module.name
            if module is None or isinstance(module, str):
                self.switch_backward(key, options.items["enable_backward"], node)
        return None

    # -- copies and resets --------------------------------------------------------------------

    def _grad_of(self, array: Buffer | View) -> bool | None:
        if isinstance(array, View) and array.requires_grad is not None:
            return array.requires_grad
        base = base_of(array)
        return base.requires_grad if base is not None else None

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

    # -- methods ------------------------------------------------------------------------------

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

    def _command_method(
        self, command: Command, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        if name == "launch":
            return self._carry_out(dict(command.given), node, tape_sees=False)
        if name.startswith("set_param"):
            command.given = {}  # what it is given from here on is not known
        return None

    def _tape_method(self, tape: Tape, name: str, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        if name in ("__enter__", "__exit__"):
            if name == "__enter__":
                return self.enter(tape, node)
            self.leave(tape, node)
            return None
        if name == "record_func":
            for recorded in self.recordings:
                recorded.custom = recorded.custom or recorded.tape is tape
        if name in ("zero", "reset"):
            self.lived(name, node, tape=tape)
        if name == "reset":
            for recorded in self.recordings:
                recorded.closed = recorded.closed or recorded.tape is tape
            self.waiting = [r for r in self.waiting if not r.closed]
        if name != "backward":
            return None
        recording = next((r for r in reversed(self.recordings) if r.tape is tape), None)
        if recording is None:
            return None
        objective = self._objective(args, kwargs)
        bare = not args and not kwargs and not self.seeds
        recording.backwards.append(Backward(self.site(node), objective, dict(self.guards), bare))
        self.lived("backward", node, tape=tape, recording=recording)
        self.seeds = {}
        self.prelude = []
        return None

    def _objective(self, args: list[Any], kwargs: dict[str, Any]) -> tuple[Buffer, ...] | None:
        loss = args[0] if args else kwargs.get("loss")
        grads = args[1] if len(args) > 1 else kwargs.get("grads")
        found: list[Buffer] = []
        known = True
        if loss is not None:
            base = base_of(self.as_array(loss))
            known = base is not None
            found.extend([base] if base is not None else [])
        if isinstance(grads, Dict):
            for key in grads.items:
                base = base_of(self.as_array(key))
                if base is not None:
                    found.append(base)
                else:
                    known = False
            known = known and grads.exact
        elif grads is not None:
            known = False
        if loss is None and grads is None:
            found.extend(self.seeds.values())
            known = bool(found)
        return tuple(found) if known else None

    # -- simulation libraries -------------------------------------------------------------------

    def _simulation_call(self, callee: External, args: list[Any], kwargs: dict[str, Any], node: Any) -> Any:
        arrays = [a for a in args if isinstance(a, Placeholder) and a.library]
        if callee.last in ("eval_fk", "eval_ik") and arrays:
            return None
        return Placeholder(callee.last, "simulation")

    def _simulation_method(
        self, receiver: Placeholder, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        if name in ("step", "simulate"):
            states = [a for a in (*args, *kwargs.values()) if isinstance(a, Placeholder) and a.library]
            offset = 1 if name == "simulate" and len(states) > 2 else 0
            if len(states) >= 2 + offset:
                self._simulation_step(name, states[offset], states[offset + 1], node)
            return None
        if name == "clear_forces":
            for field in ("particle_f", "body_f"):
                array = self.as_array(self.child(receiver, field, f"{receiver.name}.{field}"))
                assert array is not None
                if receiver.children[field].buffer in self._touched():
                    self._emit_reset("clear_forces()", array, node)
            return None
        if name in ("state", "control", "contacts", "finalize", "collide"):
            return Placeholder(name, receiver.library)
        return UNKNOWN

    def _touched(self) -> set[Buffer]:
        return {b.buffer for r in self.active for e in r.events for b in e.bindings.values()}

    def _simulation_step(self, name: str, before: Placeholder, after: Placeholder, node: Any) -> None:
        reads = tuple(f"in.{f}" for f in _STATE_FIELDS)
        writes = tuple(f"out.{f}" for f in _STATE_FIELDS)
        effect = events.library_effect(name, self.site(node), reads, writes)
        call = node if isinstance(node, cst.Call) else None
        nodes = [a.value for a in call.args] if call is not None else []
        bindings: dict[str, Binding] = {}
        for prefix, state in (("in", before), ("out", after)):
            source = next((n for n in nodes if self.evaluate(n) is state), None)
            mark = self.origin(source) if source is not None else None
            text = self.frame.module.source.code(source) if source is not None else state.name
            for field in _STATE_FIELDS:
                held = self.child(state, field, f"{state.name}.{field}")
                array = self.as_array(held)
                if array is not None:
                    bindings[f"{prefix}.{field}"] = self._binding(array, f"{text}.{field}", mark)
        self.emit("library", effect, bindings, node)


def _is_one(dim: Any) -> bool:
    """Whether a launch has one thread."""
    sizes = dim.items if isinstance(dim, List) else dim if isinstance(dim, tuple) else (dim,)
    return bool(sizes) and all(isinstance(s, int) and s == 1 for s in sizes)


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


def _argument_nodes(node: Any, name: str, count: int) -> list[Any]:
    """The expressions of ``inputs=[...]`` or ``outputs=[...]``, or Nones if they are not a display."""
    found = None
    if isinstance(node, cst.Call):
        position = _LAUNCH.index(name)
        positional = [a for a in node.args if a.keyword is None]
        if position < len(positional) and not any(a.star for a in positional[: position + 1]):
            found = positional[position].value
        for argument in node.args:
            if argument.keyword is not None and argument.keyword.value == name:
                found = argument.value
    if isinstance(found, (cst.List, cst.Tuple)) and len(found.elements) == count:
        return [None if isinstance(e, cst.StarredElement) else e.value for e in found.elements]
    return [None] * count


def _use_of_gradient(summary: KernelSummary, parameter: str) -> str:
    """What a kernel off the tape does to a gradient: scales it, sets it, or reads it."""
    if not summary.writes_of(parameter):
        return "read"
    return "rewrite" if summary.reads_of(parameter) else "clear"


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
