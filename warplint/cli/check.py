"""`warplint check`: from paths to a report, one stage after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from warplint.cli import baseline, stages
from warplint.cli.baseline import Fingerprints
from warplint.cli.fixing import fix, offered
from warplint.cli.options import Options
from warplint.cli.output import read_source, save
from warplint.cli.progress import progress
from warplint.cli.selection import matches_any
from warplint.cli.suppress import apply_suppressions
from warplint.model import (
    Finding,
    Location,
    Program,
    ProgramRow,
    ProgramStatus,
    Report,
    Result,
    Rule,
    Verdict,
)
from warplint.report.numbers import rounded

_MEASURED = (ProgramStatus.VERIFIED, ProgramStatus.WRONG, ProgramStatus.INCONCLUSIVE)
_UNTOLD = (
    (ProgramStatus.BLOCKED, "could not be run"),
    (ProgramStatus.INCONCLUSIVE, "ran without a verdict"),
)
_EXCLUDED = "excluded by the configuration"
_MOST_REASONS = 3
_UNCHANGED = "nothing that it imports has changed"
_ELSEWHERE = "another shard runs it"


@dataclass(frozen=True)
class Run:
    """What a run came to."""

    report: Report
    files: int
    internal_errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """For stderr: lines that must not be missed."""
    timings: tuple[tuple[str, float], ...] = ()
    known: int = 0
    """Results that the baseline took away."""
    choices: tuple[Choice, ...] = ()
    """The programs of the checked tree."""
    difference: str = ""
    """What ``--diff`` shows."""


@dataclass(frozen=True)
class Choice:
    """A program of the checked tree, and why it is not run (or that it is)."""

    program: Program
    skipped: str | None = None


def check(
    options: Options,
    rules: Mapping[str, Rule],
    *,
    wanted: Callable[[Program], bool] = lambda program: True,
    listen: Callable[[Any], None] | None = None,
) -> Run:
    """Run all stages and put their results together.

    Only ``wanted`` programs are run; ``listen`` hears of their progress instead of the terminal.
    """
    clock = _Clock()
    found = find_files(options)
    files = found.files
    clock.lap("discovery")
    cache = stages.open_cache(options.root, enabled=options.cache)
    stages.prepare(files, cache, options.jobs)
    clock.lap("reading")
    changes = find_changes(options)
    choices = choose_programs(options, files, cache, changes)
    readable = [file for file in files if not file.problem]
    clock.lap("programs")
    static = stages.analyze(
        readable,
        [choice.program for choice in choices],
        root=options.root,
        cache=cache,
        jobs=options.jobs,
        # What is shown by made-up arguments only is not asked for where the user names a program.
        alone=options.probe != "none" and not options.entries,
        python=options.settings.get("python"),
    )
    cache.save()
    clock.lap("static")
    files = _concerned(files, choices, changes)
    readable = [file for file in files if not file.problem]
    findings: tuple[Finding, ...] = tuple(static.findings)
    alone: tuple[Finding, ...] = tuple(static.alone)
    if options.buffer is not None or changes is not None:
        # What is read beside the files that were asked for is context.
        asked = {file.display for file in files}
        findings = tuple(finding for finding in findings if finding.location.file in asked)
        alone = tuple(finding for finding in alone if finding.location.file in asked)
    if options.probe != "none" and not options.entries:
        choices = [*choices, *_tests(options, findings, choices, readable, cache, changes)]
    results = [unreadable(file) for file in files if file.problem]
    rows: tuple[ProgramRow, ...] = ()
    objectives: tuple[Any, ...] = ()
    warnings = list(found.warnings)
    programs = [choice.program for choice in choices if choice.skipped is None]
    if options.probe == "none":
        results += [unverified(finding, rules, "probing-disabled") for finding in findings]
    else:
        chosen = [choice for choice in choices if wanted(choice.program)]
        probed = _probe(options, chosen, findings, alone, listen)
        results += probed.results
        rows = tuple(probed.programs)
        objectives = tuple(probed.objectives)
        warnings += probed.notes
        # A tree without a tape has nothing to measure, and that is no news.
        if rows or findings or (options.probe == "all" and any(file.screened for file in readable)):
            warnings += nothing_probed(rows, choices)
        clock.lap("probe")
    results = [rounded(named(result, rules)) for result in results]
    fixed = None
    if options.fix or options.diff:
        shown = progress(quiet=options.quiet, verbose=options.verbose)
        with nullcontext(listen) if listen else shown as report_progress:
            fixed = fix(options, rules, readable, programs, (results, rows, objectives), report_progress)
        results, rows, readable = list(fixed.results), fixed.programs, list(fixed.files)
        warnings += fixed.warnings
        clock.lap("fixes")
    results = [result for result in results if options.selection.shows(result.rule, result.location.file)]
    measured = options.probe != "none" and all(row.status in _MEASURED for row in rows)
    results = apply_suppressions(results, readable, rules, options.selection, probed=measured)
    results = by_cells(results, files)
    known = 0
    if options.baseline or options.write_baseline:
        decided = {file.display for file in files} if measured and not options.shard else set()
        results, known, told = _without_known(results, options, decided)
        warnings += told
    if not options.show_dismissed and options.shard is None:
        results = [result for result in results if result.verdict is not Verdict.DISMISSED]
    results = offered(results, readable, programs, options.root, cache)
    cache.save()
    notices = (*(fixed.curves if fixed else ()), *(_skipped_calls(static) if options.verbose else ()))
    report = Report(
        results=tuple(sorted(results, key=lambda result: result.sort_key)),
        programs=tuple(sorted(rows, key=lambda row: (row.program, row.arguments))),
        fixed=fixed.fixed if fixed and options.fix else None,
        notices=notices,
    )
    return Run(
        report=report,
        files=len(files),
        internal_errors=tuple(str(error) for error in static.internal_errors),
        warnings=tuple(warnings),
        timings=clock.laps,
        known=known,
        choices=tuple(choices),
        difference=fixed.difference if fixed else "",
    )


def _tests(
    options: Options,
    findings: Sequence[Finding],
    choices: Sequence[Choice],
    files: Sequence[Any],
    cache: Any,
    changes: Any,
) -> list[Choice]:
    """Tests, for findings that lie in no program."""
    tests = stages.find_tests(findings, [choice.program for choice in choices], files, options.root, cache)
    return [Choice(test, _skipped(test, options, files, changes)) for test in tests]


def _probe(
    options: Options,
    choices: Sequence[Choice],
    findings: Sequence[Finding],
    alone: Sequence[Finding],
    listen: Callable[[Any], None] | None,
) -> Any:
    """Run the programs, or this shard's part of them."""
    programs = [choice.program for choice in choices if choice.skipped is None]
    if options.probe == "findings":
        places = {finding.location.file for finding in findings}
        programs = [program for program in programs if places.intersection(program.closure)]
    if options.shard is not None:
        # What other shards decide is theirs to report.
        mine = {name for program in programs for name in program.closure}
        theirs = {name for c in choices if c.skipped == _ELSEWHERE for name in c.program.closure}
        findings = [f for f in findings if f.location.file in mine or f.location.file not in theirs]
        alone = alone if options.shard.index == 1 else ()
    shown = progress(quiet=options.quiet, verbose=options.verbose)
    with nullcontext(listen) if listen else shown as report_progress:
        return stages.probe(programs, findings, dict(options.settings), report_progress, alone)


def _without_known(
    results: list[Result], options: Options, decided: set[str]
) -> tuple[list[Result], int, list[str]]:
    """The results that are not in the baseline, how many are, and a word about what is stale.

    ``decided`` holds the files of which this run would have found all that is in a baseline.
    """
    target = options.write_baseline or options.baseline
    assert target is not None
    fingerprints = Fingerprints(
        Path(os.path.abspath(target)).parent, options.root, lambda file: read_source(file, options)
    )
    if options.write_baseline:
        entries = baseline.take(results, fingerprints)
        save(options.write_baseline, baseline.dump(entries))
        return baseline.sift(results, entries, fingerprints).results, entries.total(), []
    sifted = baseline.sift(results, baseline.read(target), fingerprints)
    told = baseline.stale(
        sifted.unmatched,
        fingerprints,
        lambda entry: (
            (shown := fingerprints.display(entry)) in decided and options.selection.shows(entry.rule, shown)
        ),
        str(target),
    )
    return sifted.results, sifted.known, told


@dataclass(frozen=True)
class Found:
    """The files to check, and what was found but cannot be."""

    files: list[Any]
    warnings: tuple[str, ...] = ()


def find_files(options: Options) -> Found:
    """The files to check: excludes of the call are relative to where it was made, those of
    the configuration to the configuration's own directory."""
    if options.buffer is not None:
        globs = (*options.exclude, *options.config.exclude)
        out = matches_any(_below(options.buffer.path, options.config.directory), globs)
        return Found([] if out else [options.buffer])
    found = stages.discover(options.paths, root=options.root, exclude=options.exclude)
    excluded = options.config.exclude
    base = options.config.directory
    files = list(found.files)
    if excluded:
        files = [file for file in files if not matches_any(_below(file.path, base), excluded)]
    warnings = tuple(found.passed_over)
    if not files and not warnings:
        where = ", ".join(str(path) for path in options.paths)
        but = " that is not excluded" if options.exclude or excluded else ""
        warnings = (f"nothing was checked: no Python file{but} was found in {where}",)
    return Found(files, warnings)


def choose_programs(options: Options, files: Sequence[Any], cache: Any, changes: Any = None) -> list[Choice]:
    """All programs of the tree, each with the reason why it is not run, if any."""
    choices = []
    for program in stages.find_programs(files, options.root, options.entries, cache, options.entry_directory):
        choices.append(Choice(program, _skipped(program, options, files, changes)))
    if options.shard is None:
        return choices
    mine = options.shard.share([choice for choice in choices if choice.skipped is None])
    return [
        choice if choice.skipped or choice in mine else Choice(choice.program, _ELSEWHERE)
        for choice in choices
    ]


def _skipped(program: Program, options: Options, files: Sequence[Any], changes: Any) -> str | None:
    if changes is not None and not changes.concern(program, files, options.root):
        return _UNCHANGED
    if options.entries:
        return None
    if not program.reaches_tape:
        return "reaches no tape and no manual adjoint launch"
    if matches_any(
        _below(options.root / program.file, options.config.directory), options.config.probe.exclude
    ):
        return _EXCLUDED
    return None


def find_changes(options: Options) -> Any:
    """What has changed since the revision of the call; none where all is to be checked."""
    if options.changed_since is None:
        return None
    changes = stages.changes_since(options.changed_since, options.root)
    source = options.config.source
    return None if source is not None and changes.touch(source) else changes


def _concerned(files: Sequence[Any], choices: Sequence[Choice], changes: Any) -> list[Any]:
    """The files that a change may have to do with: its own, and those of the programs that hold it."""
    if changes is None:
        return list(files)
    held = {name for choice in choices if choice.skipped != _UNCHANGED for name in choice.program.closure}
    return [file for file in files if file.display in held or changes.touch(file.path)]


def by_cells(results: list[Result], files: Sequence[Any]) -> list[Result]:
    """Results whose lines in notebooks are those of cells."""
    for file in files:
        if file.notebook is not None:
            results = [file.notebook.placed(result, file.display) for result in results]
    return results


def unreadable(file: Any) -> Result:
    """WL002: the file could not be checked. The other files' results still come."""
    return Result(
        rule="WL002",
        name="unreadable-file",
        verdict=Verdict.UNVERIFIED,
        message=f"this file was not checked: {file.problem}",
        location=Location(file.display, *file.problem_place),
        reason="unreadable",
    )


def unverified(finding: Finding, rules: Mapping[str, Rule], reason: str) -> Result:
    """A finding that no program was asked about."""
    rule = rules.get(finding.rule)
    return Result(
        rule=finding.rule,
        name=rule.name if rule else finding.rule,
        verdict=Verdict.NOTE if finding.is_note else Verdict.UNVERIFIED,
        message=finding.message,
        location=finding.location,
        related=finding.related,
        reason=None if finding.is_note else reason,
        help=finding.help,
        docs=(rule.docs or None) if rule else None,
    )


def named(result: Result, rules: Mapping[str, Rule]) -> Result:
    """Fill in what the rule's page knows: its name and where to read on."""
    rule = rules.get(result.rule)
    if rule is None:
        return result
    return replace(result, name=rule.name, docs=result.docs or rule.docs or None)


def nothing_probed(rows: Sequence[ProgramRow], choices: Sequence[Choice]) -> list[str]:
    """One loud line where the run measured nothing at all."""
    told = []
    for status, words in _UNTOLD:
        reasons = [row.reason or str(status) for row in rows if row.status is status]
        if reasons:
            told.append(f"{_programs(len(reasons))} {words} ({_some(sorted(set(reasons)))})")
    if any(row.status not in dict(_UNTOLD) for row in rows):
        return []
    if not rows and any(choice.skipped in (_UNCHANGED, _ELSEWHERE) for choice in choices):
        return []
    if rows:
        why = "; ".join(told)
    elif excluded := [choice for choice in choices if choice.skipped == _EXCLUDED]:
        why = f"{_programs(len(excluded))} excluded by the configuration"
    else:
        why = "no program that reaches a tape was found (name one with --entry)"
    return [f"nothing could be probed: {why}; no gradient was measured"]


def _some(reasons: Sequence[str]) -> str:
    """The first few; all are in the report."""
    left = len(reasons) - _MOST_REASONS
    return "; ".join([*reasons[:_MOST_REASONS], *([f"{left} more reasons"] if left > 0 else [])])


def _programs(count: int) -> str:
    return f"{count} program{'' if count == 1 else 's'}"


def _skipped_calls(static: Any) -> tuple[str, ...]:
    return tuple(f"not followed: {item}" for item in static.skipped)


def _below(path: Path, base: Path) -> str:
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        return path.as_posix()


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._laps: list[tuple[str, float]] = []

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self._laps.append((stage, now - self._last))
        self._last = now

    @property
    def laps(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._laps)
