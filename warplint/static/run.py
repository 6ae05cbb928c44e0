"""Entries of the interpretation and the way from their recordings to findings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import libcst as cst

from warplint.model import Finding, Program
from warplint.source.discovery import SourceFile
from warplint.static import StaticResult
from warplint.static.graph import ScopeGraph
from warplint.static.host.core import BudgetExceededError, Frame, Project
from warplint.static.host.events import Recording
from warplint.static.host.library import Interpreter
from warplint.static.host.values import UNKNOWN, ArrayType, Bound, Class, Function, Instance, Placeholder

__all__ = ["analyze_files", "interpret", "scope_graphs"]

_ENTRY_STEPS = 60_000
"""Work for one function that nothing calls."""


def analyze_files(files: Sequence[SourceFile], programs: Sequence[Program], root: Path) -> StaticResult:
    """The findings of all entries, sorted, each once."""
    from warplint.checks import run_checks

    project = Project(tuple(files), root)
    findings: list[Finding] = []
    skipped: dict[str, None] = {}
    errors: list[str] = []
    covered: set[Any] = set()
    imported: set[Path] = set()
    for file, is_program in _entries(files, programs, project):
        if not is_program and file.path in imported and not _has_unreached(file, project, covered):
            continue  # a library that a program has already shown in its real context
        try:
            interpreter = interpret(file, project, covered)
            graphs = [ScopeGraph(r) for r in distinct(interpreter.recordings) if r.backwards]
            findings.extend(run_checks(graphs))
        except Exception as error:  # one bad entry must not take the others along
            errors.append(
                f"{file.display}: internal error in the static pass: {type(error).__name__}: {error}"
            )
            continue
        skipped.update(interpreter.skipped)
        imported.update(interpreter.modules)
    unique = {(f.rule, f.location.file, f.location.line): f for f in reversed(findings)}
    ordered = sorted(unique.values(), key=lambda f: f.sort_key)
    return StaticResult(tuple(ordered), tuple(sorted(skipped)), tuple(sorted(errors)))


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


def _entries(
    files: Sequence[SourceFile], programs: Sequence[Program], project: Project
) -> list[tuple[SourceFile, bool]]:
    """Programs first, then the screened files, so that a function is seen in its real context."""
    by_name = {f.display: f for f in files}
    chosen: dict[Path, tuple[SourceFile, bool]] = {}
    for program in programs:
        if program.reaches_tape:
            file = by_name.get(program.file) or project.resolver.file(
                (project.root / program.file).absolute()
            )
            if file is not None:
                chosen.setdefault(file.path, (file, True))
    for file in files:
        if file.screened:
            chosen.setdefault(file.path, (file, False))
    return list(chosen.values())


def interpret(file: SourceFile, project: Project, covered: set[Any] | None = None) -> Interpreter:
    """Run one file: module level with its ``__main__`` block, then what nothing has called."""
    covered = covered if covered is not None else set()
    interpreter = Interpreter(project, file)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 12_000))
    try:
        try:
            module = interpreter.import_module(file)
        except BudgetExceededError:
            module = interpreter.modules.get(file.path)
        _reset(interpreter)
        if module is not None:
            for unreached in _unreached(interpreter, module, covered):
                interpreter.limit = interpreter.steps + _ENTRY_STEPS
                try:
                    _run_entry(interpreter, unreached)
                except (BudgetExceededError, RecursionError):
                    interpreter.skip(f"{file.display}: {unreached.name} (too much work)")
                _reset(interpreter)
    except RecursionError:
        interpreter.skip(f"{file.display}: nested too deeply")
    finally:
        sys.setrecursionlimit(limit)
    covered.update(interpreter.called)
    return interpreter


def _reset(interpreter: Interpreter) -> None:
    interpreter.frames.clear()
    interpreter.turns.clear()
    interpreter.guards.clear()
    interpreter.active = []
    interpreter.waiting = []


def _mentions_tape(code: str) -> bool:
    return "Tape" in code or ".backward(" in code or "tape" in code


def _has_unreached(file: SourceFile, project: Project, covered: set[Any]) -> bool:
    """Whether a file holds a function with a tape that no entry has called so far."""
    source = project.parse(file)
    if source is None:
        return False
    members: list[Any] = list(source.tree.body)
    for statement in source.tree.body:
        if isinstance(statement, cst.ClassDef):
            members.extend(statement.body.body)
    return any(
        isinstance(node, cst.FunctionDef)
        and node not in covered
        and _mentions_tape(source.tree.code_for_node(node))
        for node in members
    )


def _unreached(interpreter: Interpreter, module: Any, covered: set[Any]) -> list[Function]:
    """Functions and methods with a tape that no entry has called, in the order of the file."""
    found: list[Function] = []
    for value in list(module.scope.names.values()):
        members = [value]
        if isinstance(value, Class) and value.module is module:
            members = list(value.attributes.values())
        for member in members:
            if not isinstance(member, Function) or member.kind != "host" or member.module is not module:
                continue
            if member.node in interpreter.called or member.node in covered:
                continue
            if isinstance(member.node, cst.FunctionDef):
                code = module.source.tree.code_for_node(member.node)
                if _mentions_tape(code):
                    found.append(member)
    return found


def _run_entry(interpreter: Interpreter, function: Function) -> None:
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


def scope_graphs(file: SourceFile, root: Path, files: Sequence[SourceFile] = ()) -> list[ScopeGraph]:
    """The graph of every tape scope that is reached from one file."""
    project = Project(tuple(files) or (file,), root)
    return [ScopeGraph(r) for r in interpret(file, project).recordings]
