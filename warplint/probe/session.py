"""One program's run: a scratch copy, the sandbox, and what came back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from warplint.model import Finding, Program
from warplint.probe import ProbeSettings, ProgressEvent
from warplint.probe.facts import Facts, Paths
from warplint.probe.interpreter import Interpreter
from warplint.probe.sandbox import (
    Limits,
    Outcome,
    blocked_reason,
    kernel_cache,
    program_environment,
    run,
)
from warplint.probe.scratch import Scratch, project_root

_PYTEST = ("-q", "-p", "no:cacheprovider")
RUNTIME = Path(__file__).resolve().parent / "runtime"


def run_program(
    program: Program,
    findings: Sequence[Finding],
    interpreter: Interpreter,
    settings: ProbeSettings,
    seconds: float,
    progress: Callable[[ProgressEvent], None],
    *,
    library: Mapping[str, Any] | None = None,
) -> tuple[Facts, Paths, Outcome]:
    """Runs ``program`` once through the probe; the facts say what became of it.

    A ``library`` is not run but imported, and the kernels that it names are tried by themselves.
    """
    entry = absolute(program.file, settings.root)
    directory = absolute(program.working_directory, settings.root)
    project = project_root(entry, settings.root)
    paths = paths_of(entry, settings)
    facts = Facts()

    def listen(message: dict[str, Any]) -> None:
        if message.get("type") == "progress":
            stage, done, total = message.get("stage"), message.get("done"), message.get("total")
            progress(ProgressEvent(program.label, str(stage), int(done or 0), int(total or 0)))
        else:
            if message.get("type") == "inputs":
                message = _with_original_paths(message, scratch)
            facts.take(_in_the_users_words(message, scratch))

    with Scratch(project, directory) as scratch:
        scratch.lay_over(paths.overlay)
        spec = {
            **program_spec(program, settings, entry, directory),
            "program": str(scratch.to_scratch(entry)),
            "directory": str(scratch.to_scratch(directory)),
            "import_root": str(scratch.to_scratch(import_root(program, entry, directory))),
            "root": str(scratch.tree),
            "seconds": seconds,
            "requests": [request(finding, paths) for finding in findings if finding.request],
        }
        if library is not None:
            spec["library"] = dict(library)
        order = scratch.directory / "probe.json"
        order.write_text(json.dumps(spec), encoding="utf-8")
        outcome = run(
            [interpreter.path, str(RUNTIME / "main.py"), str(order)],
            scratch=scratch,
            environment={**program_environment(scratch, interpreter), **dict(settings.env)},
            limits=Limits(seconds=seconds + 2.0),
            on_message=listen,
        )
        if not facts.finished and facts.blocked is None and facts.nothing is None:
            facts.blocked = scratch.original_text(blocked_reason(outcome))
            if outcome.kind == "timeout":
                facts.blocked = f"timed out after {seconds:g} s"
    return facts, paths, outcome


def paths_of(entry: Path, settings: ProbeSettings) -> Paths:
    """How the files of a program are named, and what they hold."""
    overlay = {absolute(file, settings.root).resolve(): data for file, data in settings.overlay}
    return Paths(project_root(entry, settings.root), settings.root, overlay)


def _with_original_paths(message: dict[str, Any], scratch: Scratch) -> dict[str, Any]:
    """Files of the copy by the user's own paths; scratch files and compiled kernels are left out."""
    apart = tuple(str(path) + os.sep for path in (scratch.base, kernel_cache(scratch)))
    named = {}
    for name in ("files", "listings"):
        paths = (scratch.to_original(str(path)) for path in message.get(name, ()))
        named[name] = sorted({path for path in paths if not path.startswith(apart)})
    return {**message, **named}


def _in_the_users_words(value: Any, scratch: Scratch) -> Any:
    """A message whose texts (exceptions, reasons) name files where the user has them."""
    if isinstance(value, str):
        return scratch.original_text(value)
    if isinstance(value, dict):
        return {key: _in_the_users_words(item, scratch) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_the_users_words(item, scratch) for item in value]
    return value


def program_spec(program: Program, settings: ProbeSettings, entry: Path, directory: Path) -> dict[str, Any]:
    """What the runtime needs to know of a program, with the paths given."""
    overrides: dict[str, dict[str, str]] = {}
    for name, value in settings.overrides:
        module, _, constant = name.rpartition(".")
        overrides.setdefault(module or "__main__", {})[constant] = value
    return {
        "program": str(entry),
        "directory": str(directory),
        "arguments": _arguments(program, entry, directory),
        "module": program.module if program.node is None else "pytest",
        "import_root": str(import_root(program, entry, directory)),
        "device": settings.device,
        "overrides": overrides,
        "tracker": settings.tracker,
        "parameters": list(settings.parameters),
        "objective": settings.objective,
        "investigate": settings.investigate,
        "horizon": settings.horizon,
        "iteration": settings.iteration,
        **({"memory": Limits.memory} if settings.investigate else {}),
    }


def _arguments(program: Program, entry: Path, directory: Path) -> list[str]:
    if program.node is None:
        return list(program.arguments)
    return [*_PYTEST, f"{os.path.relpath(entry, directory)}::{program.node}"]


def import_root(program: Program, entry: Path, directory: Path) -> Path:
    """The directory that comes first on ``sys.path``: the program's own, or the one of its package."""
    if program.node is not None:
        return directory  # as with ``python -m pytest``
    module = program.module
    if module is None:
        return entry.parent
    packages = module.count(".") + (entry.name == "__main__.py")
    return entry.parents[packages]


def request(finding: Finding, paths: Paths) -> Mapping[str, Any]:
    """A finding's probe request in the runtime's names."""
    asked = finding.request
    assert asked is not None
    return {
        "rule": finding.rule,
        "counterfactual": asked.counterfactual.value,
        "sites": [[paths.reported(s.file), s.line, s.end_line] for s in asked.sites],
        "kernel": asked.kernel,
        "kernel_file": paths.reported(asked.kernel_file) if asked.kernel_file else None,
    }


def absolute(display: str, root: Path) -> Path:
    path = Path(display)
    return path if path.is_absolute() else (root / path).resolve()
