"""Workflow commands: GitHub Actions turns each line into an annotation of the pull request."""

from __future__ import annotations

from warplint.model import Report, Result, Verdict
from warplint.report.context import Context, by_cell, fails_as_error, headline, says_more
from warplint.report.numbers import percent

# `gradients-verified` is good news about a whole program; as an annotation it would be noise.
_SILENT = {"WL902"}


def render(report: Report, context: Context) -> str:
    """Render one workflow command a result."""
    return "".join(
        _command(result, context)
        for result in report.results
        if result.rule not in _SILENT and result.verdict is not Verdict.DISMISSED
    )


def _command(result: Result, context: Context) -> str:
    place = context.in_file(result.location)
    fields = {
        "file": context.from_repository(place.file),
        "line": str(place.line),
    }
    # Columns are understood only where the region does not leave its line.
    if place.end_line == place.line:
        fields["col"] = str(place.column)
        if place.end_column > place.column:
            fields["endColumn"] = str(place.end_column)
    else:
        fields["endLine"] = str(place.end_line)
    fields["title"] = f"{result.rule} {result.name} ({result.verdict})"
    properties = ",".join(f"{key}={_property(value)}" for key, value in fields.items())
    return f"::{_kind(result)} {properties}::{_data(_message(result))}\n"


def _kind(result: Result) -> str:
    if fails_as_error(result):
        return "error"
    return "notice" if result.verdict is Verdict.NOTE else "warning"


def _message(result: Result) -> str:
    lines = [by_cell(result.location, result.message)]
    check = headline(result)
    if check:
        lines.append(f"measured in {result.program}: relative error {percent(check.relative_error)}")
    elif result.reason and says_more(result):
        word = "not proved" if result.verdict is Verdict.UNVERIFIED else "why"
        lines.append(f"{word}: {result.reason}")
    lines += [f"{site.location.source}:{site.location.line}: {site.message}" for site in result.related]
    if result.help:
        lines.append(f"help: {result.help}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
