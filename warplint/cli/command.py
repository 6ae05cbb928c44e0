"""The body of `warplint check`: decide, run, write the reports, work out the exit status."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from warplint.cli import stages
from warplint.cli.check import Choice, Run, check, choose_programs, find_changes, find_files
from warplint.cli.errors import CallError
from warplint.cli.options import Options, decide
from warplint.cli.output import ensure_open, read_source, write
from warplint.cli.reports import colors, new_context, repository, write_reports
from warplint.cli.shards import ShardRecord
from warplint.cli.status import BROKEN, CLEAN, exit_status, has_undecided
from warplint.model import Report, to_plain
from warplint.report.lines import plain
from warplint.rulebook import RulebookError, load_rules


def run_check(given: Mapping[str, Any]) -> int:
    """Run `warplint check` with a parsed command line; the exit status comes back."""
    try:
        rules = load_rules()
    except RulebookError as error:
        raise CallError(str(error)) from None
    options = decide(given, rules)
    if given["list_programs"]:
        cache = stages.open_cache(options.root, enabled=options.cache)
        files = find_files(options).files
        write(list_programs(choose_programs(options, files, cache, find_changes(options)), options))
        return CLEAN
    if any(file is None for _, file in options.outputs):
        ensure_open()
    run = check(options, rules)
    if options.diff:
        write(run.difference)
    context = new_context(
        rules,
        options.root,
        lambda file: read_source(file, options),
        timings=options.timings,
        quiet=options.quiet,
        verbose=options.verbose,
        statistics=options.statistics,
        checked_files=run.files,
        probed=options.probe != "none",
        known=run.known,
    )
    write_reports(_report(run, options), options.outputs, context, show_dismissed=options.show_dismissed)
    print_notes(run, options)
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
                "module": choice.program.module,
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
        module = choice.program.module
        how = "run" if module is None else f"run as -m {module}"
        verdict = how if choice.skipped is None else f"not run: {choice.skipped}"
        lines.append(f"{choice.program.label.ljust(wide)}  {verdict}")
    return "\n".join(lines) + "\n"


def _report(run: Run, options: Options) -> Report:
    """The records to render; of a shard, with what its merge needs to know."""
    if options.shard is None:
        return run.report
    record = ShardRecord(
        index=options.shard.index,
        count=options.shard.count,
        directory=os.path.relpath(options.root, repository(options.root)),
        files=run.files,
        probed=options.probe != "none",
        strict=options.strict,
        exit_zero=options.exit_zero,
        static_fail_on=options.static_fail_on,
        show_dismissed=options.show_dismissed,
        undecided=has_undecided(run.report),
    )
    return replace(run.report, shard=to_plain(record))


def print_notes(run: Run, options: Options) -> None:
    """What belongs on stderr: warnings, internal errors, timings."""
    loud, usual = ("\033[1;33m", "\033[0m") if colors(sys.stderr) else ("", "")
    for line in run.warnings:
        print(f"{loud}warplint: warning: {plain(line)}{usual}", file=sys.stderr)
    for line in run.internal_errors:
        print(f"{loud}warplint: internal error: {plain(line)}{usual}", file=sys.stderr)
    if options.write_baseline:
        count = f"{run.known} result{'' if run.known == 1 else 's'}"
        print(f"warplint: {count} written to {plain(str(options.write_baseline))}", file=sys.stderr)
    if options.timings:
        for stage, seconds in run.timings:
            print(f"warplint: {stage}: {seconds:.2f} s", file=sys.stderr)
