"""`warplint verify`: one program, one verdict, and the evidence that leads to it."""

from __future__ import annotations

import ast
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warplint.cli import stages
from warplint.cli.check import Run, named, unreadable
from warplint.cli.command import print_notes
from warplint.cli.errors import CallError, error_text
from warplint.cli.options import Options, decide
from warplint.cli.output import ensure_open, read_source
from warplint.cli.progress import progress
from warplint.cli.reports import new_context, write_reports
from warplint.cli.status import BROKEN, exit_status
from warplint.model import Program, ProgramRow, Report, Rule
from warplint.report.numbers import rounded
from warplint.rulebook import RulebookError, load_rules

DEFAULT_SECONDS = 55.0
"""For the whole command to stay below a minute."""


@dataclass(frozen=True)
class Subject:
    """The program to verify, and the files it is made of."""

    program: Program
    files: list[Any]


def run_verify(given: Mapping[str, Any]) -> int:
    """Run `warplint verify` with a parsed command line; the exit status comes back."""
    try:
        rules = load_rules()
    except RulebookError as error:
        raise CallError(str(error)) from None
    path = _existing(given["program"])
    options = _options(given, path, rules)
    if any(file is None for _, file in options.outputs):
        ensure_open()
    run = verify(options, path, tuple(given["arguments"]), rules)
    context = new_context(
        rules,
        options.root,
        lambda file: read_source(file, options),
        verbose=options.verbose,
        checked_files=run.files,
        explain=given["explain"],
    )
    write_reports(run.report, options.outputs, context, show_dismissed=True)
    print_notes(run, options)
    if run.internal_errors:
        return BROKEN
    return exit_status(run.report, rules, probed=True, strict=options.strict)


def verify(options: Options, path: Path, arguments: tuple[str, ...], rules: Mapping[str, Rule]) -> Run:
    """Read the program, run it, and put everything that is known of it together."""
    cache = stages.open_cache(options.root, enabled=options.cache)
    subject = _subject(options, path, arguments, cache)
    stages.prepare(subject.files, cache, options.jobs)
    problem = _not_python(subject.files[0])
    if problem:
        how = "" if problem.startswith("cannot be read") else "cannot be read as Python: "
        raise CallError(f"{path} {how}{problem}")
    readable = [file for file in subject.files if not file.problem]
    static = stages.analyze(
        readable,
        [subject.program],
        root=options.root,
        cache=cache,
        jobs=options.jobs,
        python=options.settings.get("python"),
    )
    cache.save()
    with progress(quiet=False, verbose=options.verbose) as report_progress:
        probed = stages.probe(
            [subject.program], tuple(static.findings), dict(options.settings), report_progress
        )
    results = [unreadable(file) for file in subject.files if file.problem]
    results += [rounded(named(result, rules)) for result in probed.results]
    _call_errors(probed.programs, probed.notes)
    report = Report(
        results=tuple(sorted(results, key=lambda result: result.sort_key)),
        programs=tuple(probed.programs),
        account=probed.accounts[0] if probed.accounts else None,
    )
    return Run(
        report=report,
        files=len(subject.files),
        internal_errors=tuple(str(error) for error in static.internal_errors),
        warnings=tuple(probed.notes),
    )


def _not_python(file: Any) -> str | None:
    """Why Python will not run a file. Another encoding that the file names is no reason."""
    problem: str | None = file.not_python
    if problem is None or not file.data:
        return problem
    try:
        ast.parse(file.data)
    except (SyntaxError, ValueError):
        return problem
    return None


def _call_errors(rows: Sequence[ProgramRow], notes: Sequence[str]) -> None:
    """What only the run can tell of the call: the program has no such parameter, constant or iteration."""
    told = [row.reason or "" for row in rows] + list(notes)
    for reason in told:
        if reason.startswith("probe.parameters: "):
            raise CallError(reason.replace("probe.parameters", "--parameter", 1))
        if reason.startswith(("--set ", "--horizon ", "--iteration ")):
            raise CallError(reason)


def _existing(name: str) -> Path:
    path = Path(name)
    try:
        if path.is_dir():
            raise CallError(f"{name} is a directory: name the program's file")
        if not path.is_file():
            raise CallError(f"no such program: {name}")
    except (OSError, ValueError) as error:
        raise CallError(f"cannot read {name}: {error_text(error)}") from None
    return path


def _options(given: Mapping[str, Any], path: Path, rules: Mapping[str, Rule]) -> Options:
    """The options of a check of this one program, with what only this command knows."""
    from warplint.cli.commands import check_command

    plain: dict[str, Any] = {}
    for param in check_command.params:
        several = getattr(param, "multiple", False) or param.nargs == -1
        plain[str(param.name)] = () if several else False if getattr(param, "is_flag", False) else None
    known = {name: value for name, value in given.items() if name in plain}
    options = decide({**plain, **known, "paths": (str(path),)}, rules)
    seconds = given["budget"] or options.config.probe.timeout or DEFAULT_SECONDS
    settings = {
        **options.settings,
        "timeout": seconds,
        "budget": seconds + 1.0,
        "investigate": True,
        "horizon": given["horizon"],
        "iteration": given["iteration"],
    }
    if given["parameter"]:
        settings["parameters"] = tuple(given["parameter"])
    return replace(options, settings=settings)


def _subject(options: Options, path: Path, arguments: tuple[str, ...], cache: Any) -> Subject:
    """The program as it is called here, and the files that it imports from its own tree."""
    from warplint.source.discovery import SourceFile, display_path

    entry = shlex.join([os.path.abspath(path), *arguments])
    (program,) = stages.find_programs([], options.root, [entry], cache)
    files = []
    for name in dict.fromkeys((program.file, *program.closure)):
        absolute = options.root / name
        files.append(SourceFile(absolute, display_path(absolute, options.root)))
    return Subject(program, files)
