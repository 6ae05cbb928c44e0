"""One entry of the interpretation and the way from its recordings to findings."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import libcst as cst

from warplint.source.discovery import SourceFile
from warplint.source.facts import paused_collector
from warplint.source.imports import ImportResolver
from warplint.static.graph import ScopeGraph
from warplint.static.host.core import BudgetExceededError, Frame, Project
from warplint.static.host.events import Recording
from warplint.static.host.library import Interpreter
from warplint.static.host.modules import made_members
from warplint.static.host.values import (
    UNKNOWN,
    ArrayType,
    Bound,
    Class,
    Function,
    Instance,
    Module,
    Placeholder,
)
from warplint.static.loops import Loops
from warplint.static.outcomes import Entry, Outcome

__all__ = ["interpret", "run_by_itself", "run_entry", "scope_graphs"]

_ENTRY_STEPS = 60_000
"""Work for one function that nothing calls."""
_FILE_STEPS = 600_000
"""Work for all of them, and for the module before them."""


def run_entry(entry: Entry, project: Project) -> Outcome:
    """Interpret one entry and run the checks on what it recorded."""
    from warplint.checks import run_checks, run_loop_checks

    with paused_collector():
        try:
            interpreter = interpret(entry.file, project, entry.covered)
            graphs = [ScopeGraph(r, entry.warp) for r in distinct(interpreter.recordings) if r.backwards]
            loops = Loops(interpreter.life.steps)
            findings = (*run_checks(graphs), *run_loop_checks(loops))
        except Exception as error:  # one bad entry must not take the others along
            what = f"{type(error).__name__}: {error}"
            return Outcome(error=f"{entry.file.display}: internal error in the static pass: {what}")
        called = [
            f"{module.source.display} {name}"
            for module in interpreter.modules.values()
            for name, function in made_members(module)
            if function.node in interpreter.called
        ]
        imported = sorted(module.source.display for module in interpreter.modules.values())
        events = (event for recording in interpreter.recordings for event in recording.events)
        recorded = {f"{e.effect.file} {e.effect.name}" for e in events if e.recorded}
        outcome = Outcome(
            findings,
            tuple(interpreter.skipped),
            called=tuple(sorted(called)),
            imported=tuple(imported),
            recorded=tuple(sorted(recorded)),
        )
        del interpreter
        gc.collect(0)  # what this entry left; the parsed trees are old and need no second look
        return outcome


def distinct(recordings: Sequence[Recording]) -> list[Recording]:
    """Recordings without those that repeat an earlier one (the next iteration of the training loop)."""
    seen: set[Any] = set()
    kept: list[Recording] = []
    for recording in recordings:
        events = tuple(
            (
                id(e.site.node),
                e.recorded,
                tuple((p, b.buffer.number, b.region) for p, b in e.bindings.items()),
            )
            for e in (*recording.events, *recording.changes)
        )
        seeds = tuple(
            None if b.objective is None else tuple(x.number for x in b.objective) for b in recording.backwards
        )
        if (events, seeds) not in seen:
            seen.add((events, seeds))
            kept.append(recording)
    return kept


def interpret(file: SourceFile, project: Project, covered: frozenset[str] = frozenset()) -> Interpreter:
    """Run one file: module level with its ``__main__`` block, then what nothing has called."""
    interpreter = Interpreter(project, file)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 12_000))
    try:
        try:
            module = interpreter.import_module(file)
        except BudgetExceededError:
            module = interpreter.modules.get(file.path)
        interpreter.reset()
        if module is not None:
            for name in file.facts.taped:
                if interpreter.steps > _FILE_STEPS:
                    interpreter.skip(f"{file.display}: {name} and what follows (too much work)")
                    break
                if name not in covered:
                    interpreter.limit = interpreter.steps + _ENTRY_STEPS
                    try:
                        _run_function(interpreter, module, name)
                    except (BudgetExceededError, RecursionError):
                        interpreter.skip(f"{file.display}: {name} (too much work)")
                    interpreter.reset()
    except RecursionError:
        interpreter.skip(f"{file.display}: nested too deeply")
    finally:
        sys.setrecursionlimit(limit)
    return interpreter


def _run_function(interpreter: Interpreter, module: Module, name: str) -> None:
    """Run a function of a module by its qualified name, if nothing has called it so far."""
    first, _, second = name.partition(".")
    value = module.scope.names.get(first)
    if second and isinstance(value, Class):
        value = value.attributes.get(second)
    if isinstance(value, Function) and value.kind == "host" and value.module is module:
        run_by_itself(interpreter, value)


def run_by_itself(interpreter: Interpreter, function: Function) -> None:
    """Call a function with parameters assumed distinct and otherwise unknown."""
    if function.node in interpreter.called:
        return
    arguments: list[Any] = []
    parameters = [*function.node.params.posonly_params, *function.node.params.params]
    interpreter.frames.append(Frame(function.module.scope, function.module, None))
    interpreter.frame.statement = interpreter.site(function.node)
    if function.owner is not None and function.owner.derives_from("Function"):
        given = [_parameter(interpreter, p, function) for p in parameters[1:]]
        apply = Bound(function.owner, "apply")
        interpreter.call(apply, given if function.name == "forward" else [], {}, function.node)
        interpreter.frames.pop()
        return
    if function.owner is not None and function.binding != "static":
        receiver: Any = function.owner
        if function.binding != "class":
            receiver = _instance(interpreter, function.owner)
            if function.node in interpreter.called:  # the constructor itself, or called by it
                interpreter.frames.pop()
                return
        arguments.append(receiver)
        parameters = parameters[1:]
    arguments.extend(_parameter(interpreter, p, function) for p in parameters if p.default is None)
    interpreter.call_function(function, arguments, {}, function.node)
    interpreter.frames.pop()


def _instance(interpreter: Interpreter, cls: Class) -> Instance:
    init = cls.lookup("__init__")
    arguments: list[Any] = []
    if isinstance(init, Function):
        parameters = [*init.node.params.posonly_params, *init.node.params.params][1:]
        arguments = [_parameter(interpreter, p, init) for p in parameters if p.default is None]
    made: Instance = interpreter.construct(cls, arguments, {}, cls.node)
    return made


def _parameter(interpreter: Interpreter, parameter: cst.Param, function: Function) -> Any:
    annotation = UNKNOWN
    if parameter.annotation is not None:
        annotation = interpreter.resolve(parameter.annotation.annotation, function)
    if isinstance(annotation, Class) and annotation.module is not None and not annotation.is_struct:
        return _instance(interpreter, annotation)
    last = getattr(annotation, "last", "")
    if last in ("int", "float", "bool", "str"):
        return UNKNOWN
    made = Placeholder(parameter.name.value)
    if isinstance(annotation, ArrayType) or last == "array":
        interpreter.as_array(made)
        return made.buffer
    return made


def scope_graphs(file: SourceFile, root: Path) -> list[ScopeGraph]:
    """The graph of every tape scope that is reached from one file, in the order of the program."""
    with paused_collector():
        recordings = interpret(file, Project(ImportResolver((file,), root))).recordings
        return [ScopeGraph(r) for r in distinct(recordings) if r.events]
