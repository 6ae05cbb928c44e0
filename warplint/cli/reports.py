"""From a report's records to files and the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from warplint import __version__
from warplint.cli.output import save, write
from warplint.model import Location, Report, Rule, Verdict
from warplint.report import Context, render

_COLUMNS = 100
_MOST_COLUMNS = 110
_COMPLETE = ("json", "sarif")
"""Formats that `warplint merge` reads: of a shard they hold also what is not shown."""


def write_reports(
    report: Report, outputs: Sequence[tuple[str, Path | None]], context: Context, *, show_dismissed: bool
) -> None:
    """Write all reports of a run; a file that is ``None`` is standard output."""
    shown = report
    if not show_dismissed:
        results = tuple(r for r in report.results if r.verdict is not Verdict.DISMISSED)
        shown = replace(report, results=results)
    for format, file in outputs:
        chosen = report if format in _COMPLETE and report.shard is not None else shown
        if file is not None:
            save(file, render(format, chosen, context))
        else:
            write(render(format, chosen, replace(context, color=colors(sys.stdout), width=columns())))


def new_context(
    rules: Mapping[str, Rule], root: Path, read_source: Callable[[str], str | None], **more: Any
) -> Context:
    """What reports of files below ``root`` depend on."""
    return Context(
        version=__version__,
        rules=rules,
        read_source=read_source,
        in_file=lambda place: _in_file(place, read_source),
        start=root.as_posix(),
        repository=repository(root).as_posix(),
        width=_COLUMNS,
        **more,
    )


def _in_file(place: Location, read_source: Callable[[str], str | None]) -> Location:
    """Where a place in a cell of a notebook stands in the file."""
    if not place.cell:
        return place
    from warplint.source.notebooks import file_line

    text = read_source(place.file)
    return Location(place.file, file_line(text.encode(), place.cell, place.line) if text else 1)


def repository(start: Path) -> Path:
    """The root of the repository that holds ``start``, or ``start``."""
    for directory in (start, *start.parents):
        if (directory / ".git").exists():
            return directory
    return start


def columns() -> int:
    """The terminal's width; a fixed one elsewhere, so that files do not depend on the screen."""
    if sys.stdout is None or not sys.stdout.isatty():
        return _COLUMNS
    try:
        wide = os.get_terminal_size(sys.stdout.fileno()).columns
    except OSError:
        return _COLUMNS
    return min(wide or _COLUMNS, _MOST_COLUMNS)  # some terminals say 0 for "unknown"


def colors(stream: Any) -> bool:
    """Colour on a terminal that did not ask for none (https://no-color.org)."""
    return (
        stream is not None
        and bool(stream.isatty())
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )
