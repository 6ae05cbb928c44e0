"""Calls into Warp's own library that compute something natively: solvers and assembled integrals.

A solver is one operation: what happens inside is its own business. An integral is seen launch by
launch, since a tape may well record them; that it has come to its end is an event of its own, so
that what it made can be held.
"""

from __future__ import annotations

import functools
import importlib.machinery
import sys
from collections.abc import Callable
from typing import Any

from . import arrays

SOLVERS = {"warp._src.optim.linear": ("cg", "cr", "bicgstab", "gmres")}
INTEGRALS = {"warp._src.fem.integrate": ("integrate", "interpolate")}
FUNCTIONS = {**SOLVERS, **INTEGRALS}


def hook(stream: Any) -> None:
    """Wraps the functions when the program first imports them: these modules are slow to load."""
    sys.meta_path.insert(0, _Finder(stream))


class _Finder:
    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in FUNCTIONS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                for function in FUNCTIONS[name]:
                    if hasattr(module, function):
                        setattr(module, function, _watched(self.stream, getattr(module, function)))

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _watched(stream: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if stream.depth or stream.capture is not None:
            return original(*args, **kwargs)
        given = [a for a in _arrays([*args, *kwargs.values()]) if arrays.gradient_owner(a) is None]
        if original.__module__ in SOLVERS:
            event = stream.event("library")
            event.arrays = [("", a) for a in {id(a): a for a in given}.values()]
            event.details["kernel"] = original.__name__
            return stream.run(event, lambda: original(*args, **kwargs))
        before = [arrays.content(a) for a in given]
        result = original(*args, **kwargs)
        made = [a for a, data in zip(given, before) if arrays.content(a) != data]
        event = stream.event("library")
        event.arrays = [("", a) for a in {id(a): a for a in [*made, *_arrays([result])]}.values()]
        event.details["kernel"] = original.__name__
        stream.run(event, lambda: None)
        return result

    return call


def _arrays(values: Any) -> list[Any]:
    """Arrays of numbers among the arguments or results of a call, those of sparse matrices included."""
    found = []
    for value in values:
        if isinstance(value, (tuple, list)):
            found += _arrays(value)
        else:
            array: Any = value if arrays.is_array(value) else getattr(value, "values", None)
            if arrays.is_array(array) and array.ptr and arrays.is_float(array):
                found.append(array)
    return found
