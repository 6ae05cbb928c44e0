"""Kernels seen from the host: launches, and calls that Warp carries out as launches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import libcst as cst

from warplint.static.host import events
from warplint.static.host.allocations import Allocations
from warplint.static.host.core import Frame, dotted
from warplint.static.host.events import ALL_FIELDS, ONE_THREAD, Binding
from warplint.static.host.values import (
    UNKNOWN,
    Adjoint,
    Buffer,
    Carried,
    Class,
    Command,
    Dict,
    Function,
    Instance,
    List,
    Pointer,
    View,
    base_of,
    carried,
)
from warplint.static.kernels.analysis import analyze_kernel
from warplint.static.kernels.summary import KernelSummary, Site

__all__ = ["Launches"]

_LAUNCH = ("kernel", "dim", "inputs", "outputs", "adj_inputs", "adj_outputs", "device", "stream", "adjoint")
_LINEAR_OPERATORS = frozenset({"Add", "Subtract"})


class Launches(Allocations):
    """Arguments are bound to the parameters that the kernel's summary speaks of."""

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

    def goes_back(self, function: Function) -> bool:
        """Whether a kernel is compiled with backward code; asked before anything is known of its body."""
        off = function.options.get("enable_backward") is False
        return not off and self._backward_switch(function) is None

    def _backward_switch(self, function: Function) -> Site | None:
        """The statement that turns a kernel's backward code off, if its own decorator is silent."""
        if function.kind != "kernel" or "enable_backward" in function.options:
            return None
        module = function.options.get("module")
        name = module if isinstance(module, str) else function.module.name
        return self.no_backward.get(name) or function.module.no_backward

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
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                arguments[parameter.name] = value
            elif parameter.kind != "scalar":
                self._bind_paths(summary, parameter.name, value, source, bindings)
            if isinstance(value, Instance):
                numbers = [(f"{parameter.name}.{k}", v) for k, v in value.attributes.items()]
                body = kernel.module.source.code(kernel.node, limit=1 << 20)
                host.update((k, v) for k, v in numbers if isinstance(v, Carried) and k in body)
                plain = {k: v for k, v in numbers if isinstance(v, (int, float))}
                if all(k in plain or base_of(v) is not None for k, v in numbers):
                    arguments |= {f"{parameter.name}.{ALL_FIELDS}": 1, **plain}
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

    def _command_method(
        self, command: Command, name: str, args: list[Any], kwargs: dict[str, Any], node: Any
    ) -> Any:
        if name == "launch":
            return self._carry_out(dict(command.given), node, tape_sees=False)
        if name.startswith("set_param"):
            command.given = {}  # what it is given from here on is not known
        return None

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


def _is_one(dim: Any) -> bool:
    """Whether a launch has one thread."""
    sizes = dim.items if isinstance(dim, List) else dim if isinstance(dim, tuple) else (dim,)
    return bool(sizes) and all(isinstance(s, int) and s == 1 for s in sizes)


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
