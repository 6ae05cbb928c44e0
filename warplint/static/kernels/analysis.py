"""From the body of a kernel to its effect summary."""

from __future__ import annotations

from typing import Any

from warplint.static.host.values import ArrayType, Class, External, Function
from warplint.static.kernels import builtins as table
from warplint.static.kernels import domain
from warplint.static.kernels.calls import parameters_of
from warplint.static.kernels.domain import ArrayRef, StructRef, Value
from warplint.static.kernels.effects import BudgetError, Frame, HostResolver
from warplint.static.kernels.statements import Statements
from warplint.static.kernels.summary import KernelSummary, Parameter, Site

__all__ = ["HostResolver", "analyze_kernel"]


def analyze_kernel(function: Function, host: HostResolver) -> KernelSummary:
    """The effect summary of a kernel (or of a func, taken as if it were launched)."""
    walk = Statements(host)
    frame = Frame(function)
    parameters = []
    for parameter in parameters_of(function):
        name = parameter.name.value
        kind, integer, entry = _classify(name, walk.annotation(parameter, function))
        parameters.append(Parameter(name, kind, integer))
        frame.names[name] = entry
    try:
        walk.block(function.node.body, frame)
    except (BudgetError, RecursionError):
        walk.opaque = True
    walk.read_of_others()
    return KernelSummary(
        name=function.name,
        file=function.module.source.display,
        site=Site(function.module.source, function.node),
        parameters=tuple(parameters),
        reads=tuple(walk.reads),
        writes=tuple(walk.writes),
        needs=frozenset(walk.needs),
        flows={path: frozenset(sources) for path, sources in walk.flows.items()},
        multiplies=tuple(walk.multiplies),
        updates=walk.updates(),
        faults=tuple(walk.found),
        opaque=walk.opaque,
        backward=function.options.get("enable_backward") is not False,
    )


def _classify(name: str, annotation: Any) -> tuple[str, bool, Any]:
    """Kind of a parameter, whether it is an integer, and what its name stands for in the body."""
    if isinstance(annotation, ArrayType):
        ref = ArrayRef(name, annotation.ndim, annotation.element, struct=annotation.struct)
        return "array", annotation.element == "int", ref
    if isinstance(annotation, Class) and annotation.is_struct:
        return "struct", False, StructRef(name, annotation)
    last = annotation.last if isinstance(annotation, External) else getattr(annotation, "__name__", "")
    if last:
        # A scalar argument: its value is stored in the tape, so nothing can overwrite it.
        return "scalar", last in table.INTEGER_TYPES, Value(index=domain.symbol(name))
    return "unknown", False, ArrayRef(name, None, "unknown")
