"""Kernels and custom adjoints in files that no program loads: looked at without a launch.

One interpreter loads all the files, because each would load most of the others again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import libcst as cst

from warplint.model import Finding
from warplint.source.discovery import SourceFile
from warplint.source.facts import paused_collector
from warplint.static.host.core import BudgetExceededError, Project, dotted
from warplint.static.host.library import Interpreter
from warplint.static.host.values import Function, Module
from warplint.static.kernels.summary import Site
from warplint.static.outcomes import Warp
from warplint.static.run import run_by_itself
from warplint.versions import Version

__all__ = ["find_alone"]

_STEPS = 600_000
"""Work for the top level of one file."""


def find_alone(
    files: Sequence[SourceFile], project: Project, recorded: frozenset[str], warp: Warp
) -> tuple[tuple[Finding, ...], str]:
    """The findings, and what went wrong if the interpreter failed.

    ``recorded`` names kernels that are seen on a tape elsewhere, as ``file name``; ``warp`` the version
    of Warp that a file meets.
    """
    if not files:
        return (), ""
    found: list[Finding] = []
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 12_000))
    try:
        with paused_collector():
            interpreter = Interpreter(project, files[0])
            for file in files:
                found += _of_file(file, interpreter, recorded, warp(file.path))
    except Exception as error:  # what was found before is as good as ever
        return tuple(found), f"internal error in the static pass: {type(error).__name__}: {error}"
    finally:
        sys.setrecursionlimit(limit)
    return tuple(found), ""


def _of_file(
    file: SourceFile, interpreter: Interpreter, recorded: frozenset[str], warp: Version | None
) -> Iterator[Finding]:
    from warplint.checks.alone import alone_findings, custom_adjoint
    from warplint.checks.base import location

    interpreter.limit = interpreter.steps + _STEPS
    try:
        module: Module | None = interpreter.import_module(file)
    except (BudgetExceededError, RecursionError):
        module = interpreter.modules.get(file.path)
    interpreter.reset()
    interpreter.limit = interpreter.steps + _STEPS
    if module is None:
        return
    for name in list(module.scope.names):
        try:
            value = module.scope.names[name]
            if not isinstance(value, Function) or value.module is not module:
                continue
            launched = f"{file.display} {value.name}" in recorded
            if value.kind == "kernel" and not launched and interpreter.goes_back(value):
                yield from alone_findings(interpreter.summary(value), warp)
            for kernel in _made_by(value, interpreter):
                if f"{file.display} {kernel.name}" not in recorded and interpreter.goes_back(kernel):
                    yield from alone_findings(interpreter.summary(kernel), warp)
        except (BudgetExceededError, RecursionError):
            interpreter.reset()
            continue
        adjoint = value.attributes.get("custom_gradient")
        if isinstance(adjoint, Function):
            yield custom_adjoint(value.name, location(Site(adjoint.module.source, adjoint.node.name)))


def _made_by(function: Function, interpreter: Interpreter) -> list[Function]:
    """The kernels that a function of the host defines when it is called, with whatever arguments."""
    if function.kind != "host" or function.node in interpreter.called or not _holds_kernel(function.node):
        return []
    before = len(interpreter.kernels)
    run_by_itself(interpreter, function)
    return [k for k in interpreter.kernels[before:] if k.module is function.module]


def _holds_kernel(node: cst.CSTNode) -> bool:
    """Whether a function is defined inside another one, under a decorator with ``kernel`` in its name."""
    stack = list(node.children)
    while stack:
        inner = stack.pop()
        if isinstance(inner, cst.FunctionDef):
            names = [
                d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator
                for d in inner.decorators
            ]
            if any("kernel" in dotted(name) for name in names):
                return True
        stack.extend(inner.children)
    return False
