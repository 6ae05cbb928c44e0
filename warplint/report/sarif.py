"""SARIF 2.1.0, shaped for GitHub code scanning (which reads only part of the format).

The alert sits on one line, the other sites are linked from its message and told once more
as a code flow; everything else a tool may want is under ``properties``.
"""

from __future__ import annotations

import gzip
import json
from typing import Any
from urllib.parse import quote

import sarif_om as om
from jschema_to_python.to_json import to_json

from warplint.model import Fix, Location, Related, Report, Result, Rule, Verdict
from warplint.report.context import Context, by_cell, fails_as_error, headline, in_order
from warplint.report.fingerprints import line_hashes
from warplint.report.json import result_record
from warplint.report.numbers import percent
from warplint.rulebook import sections

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
MOST_RESULTS = 25_000
MOST_BYTES = 10_000_000
"""Of the compressed file."""
MOST_CHARACTERS = 1024

# Good news about a whole program is no alert; it is in the text and JSON reports.
_LEFT_OUT = {"WL902"}

_KIND_AND_LEVEL = {
    Verdict.CONFIRMED: ("fail", "error"),
    Verdict.LATENT: ("fail", "warning"),
    Verdict.UNVERIFIED: ("review", "warning"),
    Verdict.NOTE: ("fail", "note"),
    Verdict.DISMISSED: ("pass", "none"),
}
_SEVERITY = {"error": "error", "warning": "warning", "note": "recommendation"}


def render(report: Report, context: Context) -> str:
    """Render ``report`` as one SARIF log with one run, as much of it as GitHub takes."""
    results = [result for result in report.results if result.rule not in _LEFT_OUT]
    shown = _most_telling(results, MOST_RESULTS)
    text = _rendered(shown, len(results) - len(shown), report, context)
    while shown and _too_large(text):
        shown = _most_telling(results, 3 * len(shown) // 4)
        text = _rendered(shown, len(results) - len(shown), report, context)
    return text


def _too_large(text: str) -> bool:
    data = text.encode("utf-8", "backslashreplace")
    return len(data) > MOST_BYTES and len(gzip.compress(data, 6)) > MOST_BYTES


def _rendered(results: list[Result], left_out: int, report: Report, context: Context) -> str:
    ids = sorted(set(context.rules) | {result.rule for result in results})
    index = {rule: position for position, rule in enumerate(ids)}
    hashes = _Hashes(context)
    run = om.Run(
        tool=om.Tool(
            driver=om.ToolComponent(
                name="warplint",
                version=context.version,
                semantic_version=context.version,
                rules=[_descriptor(rule, context, results) for rule in ids],
            )
        ),
        automation_details=om.RunAutomationDetails(id="warplint/"),
        column_kind="unicodeCodePoints",
        # No URI: the reader's checkout is the root, wherever it lies.
        original_uri_base_ids={
            ROOT: om.ArtifactLocation(description=om.Message(text="The root of the repository."))
        },
        results=[_result(result, index[result.rule], context, hashes) for result in results],
    )
    properties: dict[str, Any] = {"left_out": left_out} if left_out else {}
    if report.shard is not None:
        properties["shard"] = report.shard
    run.properties = properties or None
    log = om.SarifLog(version="2.1.0", schema_uri=SCHEMA_URI, runs=[run])
    return _write(log, [_kind_and_level(result) for result in results])


def _write(log: Any, kinds: list[tuple[str, str]]) -> str:
    """Serialise, with the values that sarif-om drops for being its defaults written out."""
    document = json.loads(to_json(log))
    run = document["runs"][0]
    run.setdefault("results", [])
    for result, (kind, level) in zip(run["results"], kinds, strict=True):
        result["kind"], result["level"] = kind, level
    for rule in run["tool"]["driver"]["rules"]:
        rule["defaultConfiguration"] = {"level": rule["defaultConfiguration"].get("level", "warning")}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _most_telling(results: list[Result], most: int) -> list[Result]:
    """GitHub takes a bounded number of results: keep the heaviest verdicts, in their order."""
    if len(results) <= most:
        return results
    heaviest = sorted(range(len(results)), key=lambda i: (-results[i].verdict.weight, i))[:most]
    return [results[i] for i in sorted(heaviest)]


def _kind_and_level(result: Result) -> tuple[str, str]:
    return ("fail", "error") if fails_as_error(result) else _KIND_AND_LEVEL[result.verdict]


def _descriptor(id: str, context: Context, results: list[Result]) -> Any:
    rule = context.rules.get(id)
    if rule is None:
        # A result always names a rule; one without a page still has to be valid SARIF.
        name = next(result.name for result in results if result.rule == id)
        return om.ReportingDescriptor(
            id=id,
            name=name,
            short_description=om.MultiformatMessageString(text=name),
            default_configuration=om.ReportingConfiguration(level="warning"),
        )
    return om.ReportingDescriptor(
        id=rule.id,
        name=rule.name,
        short_description=om.MultiformatMessageString(text=_sentence(rule.summary)),
        full_description=om.MultiformatMessageString(text=_description(rule)),
        help=om.MultiformatMessageString(text=rule.text, markdown=rule.text),
        help_uri=rule.docs or None,
        default_configuration=om.ReportingConfiguration(level=rule.level),
        properties={
            "precision": rule.precision.value,
            "problem.severity": _SEVERITY[rule.level],
            "tags": ["gradient", "warp", "correctness"],
        },
    )


def _description(rule: Rule) -> str:
    text = " ".join(sections(rule.text).get("What it does", rule.summary).split())
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1].rstrip() + "…"


def _result(result: Result, rule_index: int, context: Context, hashes: _Hashes) -> Any:
    before, after = in_order(result)
    fields: dict[str, Any] = {}
    fingerprint = hashes.of(context.in_file(result.location))
    if fingerprint:
        fields["partial_fingerprints"] = {"primaryLocationLineHash": fingerprint}
    if result.related:
        primary = Related(result.location, result.message)
        fields["related_locations"] = [
            _location(site.location, context, id=number, message=site.message)
            for number, site in enumerate(result.related, start=1)
        ]
        fields["code_flows"] = [
            om.CodeFlow(
                thread_flows=[
                    om.ThreadFlow(
                        locations=[
                            om.ThreadFlowLocation(
                                location=_location(site.location, context, message=site.message)
                            )
                            for site in (*before, primary, *after)
                        ]
                    )
                ]
            )
        ]
    if result.fix and result.fix.edits:
        fields["fixes"] = [_fix(result.fix, context)]
    kind, level = _kind_and_level(result)
    return om.Result(
        rule_id=result.rule,
        rule_index=rule_index,
        kind=kind,
        level=level,
        message=om.Message(text=_message(result)),
        locations=[_location(result.location, context, one_line=True)],
        properties=result_record(result),
        **fields,
    )


def _message(result: Result) -> str:
    """The sentence, the sites as links to the related locations, the verdict, the cure."""
    parts = [_sentence(by_cell(result.location, result.message))]
    links = [f"[{_link_text(site.message)}]({number})" for number, site in enumerate(result.related, start=1)]
    if links:
        parts.append(f"See: {', '.join(links)}.")
    check = headline(result)
    if check:
        parts.append(
            f"Measured ({result.verdict}): the gradient is off by {percent(check.relative_error)}"
            f" along {check.direction}."
        )
    elif result.reason:
        parts.append(f"{str(result.verdict).capitalize()}: {_sentence(result.reason)}")
    else:
        parts.append(f"{str(result.verdict).capitalize()}.")
    if result.help:
        parts.append(f"Help: {_sentence(result.help)}")
    return " ".join(parts)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _link_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _location(
    place: Location,
    context: Context,
    *,
    id: int = -1,
    message: str | None = None,
    one_line: bool = False,
) -> Any:
    message = message and by_cell(place, message)
    place = context.in_file(place)
    return om.Location(
        id=id,
        message=om.Message(text=message) if message else None,
        physical_location=om.PhysicalLocation(
            artifact_location=_artifact(place.file, context), region=_region(place, one_line=one_line)
        ),
    )


def _artifact(file: str, context: Context) -> Any:
    path = context.from_repository(file)
    if path.startswith("/"):
        return om.ArtifactLocation(uri="file://" + _uri(path))
    return om.ArtifactLocation(uri=_uri(path), uri_base_id=ROOT)


def _uri(path: str) -> str:
    """A path as a URI; a name that is not UTF-8 keeps its bytes."""
    return quote(path.encode("utf-8", "surrogateescape"))


def _region(place: Location, *, one_line: bool = False) -> Any:
    if place.end_line == place.line:
        end = place.end_column if place.end_column > place.column else None
        return om.Region(start_line=place.line, start_column=place.column, end_column=end)
    if one_line:
        # An alert is shown in a pull request only if the diff holds all its lines.
        return om.Region(start_line=place.line, start_column=place.column)
    return om.Region(
        start_line=place.line,
        start_column=place.column,
        end_line=place.end_line,
        end_column=place.end_column or None,
    )


def _replaced(place: Location) -> Any:
    """A region to its very end; an empty one is where something is inserted."""
    return om.Region(
        start_line=place.line,
        start_column=place.column,
        end_line=place.end_line,
        end_column=place.end_column,
    )


def _fix(fix: Fix, context: Context) -> Any:
    files: dict[str, list[Any]] = {}
    for edit in fix.edits:
        replacement = om.Replacement(
            deleted_region=_replaced(edit.location), inserted_content=om.ArtifactContent(text=edit.text)
        )
        files.setdefault(edit.location.file, []).append(replacement)
    return om.Fix(
        description=om.Message(text=f"{fix.title or 'Fix'} (applicability: {fix.applicability})."),
        artifact_changes=[
            om.ArtifactChange(artifact_location=_artifact(file, context), replacements=replacements)
            for file, replacements in files.items()
        ],
    )


class _Hashes:
    """Line hashes of the files that results point into, each file read once."""

    def __init__(self, context: Context) -> None:
        self._read = context.read_source
        self._known = context.fingerprints
        self._files: dict[str, list[str]] = {}

    def of(self, place: Location) -> str | None:
        if (place.file, place.line) in self._known:
            return self._known[place.file, place.line]
        if place.file not in self._files:
            text = self._read(place.file)
            self._files[place.file] = [] if text is None else line_hashes(text)
        lines = self._files[place.file]
        return lines[place.line - 1] if 0 < place.line <= len(lines) else None
