"""The body of `warplint check`: decide, run, write the reports, work out the exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warplint import __version__
from warplint.cli import stages
from warplint.cli.check import Choice, Run, check, choose_programs, find_files
from warplint.cli.errors import CallError, error_text
from warplint.cli.options import Options, decide
from warplint.cli.output import ensure_open, write
from warplint.cli.status import BROKEN, CLEAN, exit_status
from warplint.model import Rule
from warplint.report import Context, render
from warplint.report.lines import plain
from warplint.rulebook import RulebookError, load_rules

_COLUMNS = 100
_MOST_COLUMNS = 110


def run_check(given: Mapping[str, Any]) -> int:
    """Run `warplint check` with a parsed command line; the exit status comes back."""
    try:
        rules = load_rules()
    except RulebookError as error:
        raise CallError(str(error)) from None
    options = decide(given, rules)
    if given["list_programs"]:
        cache = stages.open_cache(options.root, enabled=options.cache)
        write(list_programs(choose_programs(options, find_files(options).files, cache), options))
        return CLEAN
    if not options.output_file:
        ensure_open()
    run = check(options, rules)
    _write_reports(run, options, rules)
    _print_notes(run, options)
    if run.internal_errors:
        return BROKEN
    if options.exit_zero:
        return CLEAN
    return exit_status(
        run.report,
        rules,
        probed=options.probe != "none",
        strict=options.strict,
        static_fail_on=options.static_fail_on,
    )


def list_programs(choices: Sequence[Choice], options: Options) -> str:
    """Which programs would be run, with what, and why the others would not."""
    if options.format == "json":
        records = [
            {
                "program": choice.program.file,
                "arguments": list(choice.program.arguments),
                "working_directory": choice.program.working_directory,
                "runs": choice.skipped is None,
                "reason": choice.skipped,
            }
            for choice in choices
        ]
        return json.dumps({"schema": 1, "programs": records}, indent=2, ensure_ascii=False) + "\n"
    if not choices:
        return "no programs found\n"
    wide = max(len(choice.program.label) for choice in choices)
    lines = []
    for choice in choices:
        verdict = "run" if choice.skipped is None else f"not run: {choice.skipped}"
        lines.append(f"{choice.program.label.ljust(wide)}  {verdict}")
    return "\n".join(lines) + "\n"


def _write_reports(run: Run, options: Options, rules: Mapping[str, Rule]) -> None:
    context = _context(run, options, rules, color=False)
    for format, file in options.outputs:
        _save(file, render(format, run.report, context))
    if options.output_file:
        _save(options.output_file, render(options.format, run.report, context))
    else:
        screen = _context(run, options, rules, color=_colors(sys.stdout))
        write(render(options.format, run.report, screen))


def _print_notes(run: Run, options: Options) -> None:
    """What belongs on stderr: warnings, internal errors, timings."""
    loud, usual = ("\033[1;33m", "\033[0m") if _colors(sys.stderr) else ("", "")
    for line in run.warnings:
        print(f"{loud}warplint: warning: {plain(line)}{usual}", file=sys.stderr)
    for line in run.internal_errors:
        print(f"{loud}warplint: internal error: {plain(line)}{usual}", file=sys.stderr)
    if options.timings:
        for stage, seconds in run.timings:
            print(f"warplint: {stage}: {seconds:.2f} s", file=sys.stderr)


def _save(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise CallError(f"cannot write {file}: {error_text(error)}") from None


def _context(run: Run, options: Options, rules: Mapping[str, Rule], *, color: bool) -> Context:
    root = options.root
    return Context(
        version=__version__,
        rules=rules,
        read_source=lambda file: _read(root / file),
        start=root.as_posix(),
        repository=_repository(root).as_posix(),
        timings=options.timings,
        quiet=options.quiet,
        verbose=options.verbose,
        statistics=options.statistics,
        color=color,
        width=_columns(),
        checked_files=run.files,
        probed=options.probe != "none",
    )


def _read(path: Path) -> str | None:
    """The text as it is on disk: line ends and byte order marks count for fingerprints."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return None


def _repository(start: Path) -> Path:
    for directory in (start, *start.parents):
        if (directory / ".git").exists():
            return directory
    return start


def _columns() -> int:
    """The terminal's width; a fixed one elsewhere, so that files do not depend on the screen."""
    if sys.stdout is None or not sys.stdout.isatty():
        return _COLUMNS
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return _COLUMNS
    return min(columns or _COLUMNS, _MOST_COLUMNS)  # some terminals say 0 for "unknown"


def _colors(stream: Any) -> bool:
    """Colour on a terminal that did not ask for none (https://no-color.org)."""
    return (
        stream is not None
        and bool(stream.isatty())
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
