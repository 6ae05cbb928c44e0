"""The JSON report, schema 1: one object, the records as they are."""

from __future__ import annotations

import json
from typing import Any

from warplint.model import Evidence, Fix, ProgramRow, Report, Result, from_plain, to_plain
from warplint.report.context import Context
from warplint.report.numbers import round_floats

SCHEMA = 1


def render(report: Report, context: Context) -> str:
    """Render ``report`` as one JSON object, ending in a newline."""
    document: dict[str, Any] = {"schema": SCHEMA, "warplint": context.version}
    if report.shard is not None:
        document["shard"] = to_plain(report.shard)
    document |= {
        "results": [result_record(result) for result in report.results],
        "programs": [program_record(row, timings=context.timings) for row in report.programs],
    }
    if report.account is not None:
        from warplint.report.verify import headline

        story = dict(round_floats(to_plain(report.account)))
        document["verification"] = {"headline": headline(report), **story}
    if report.fixed is not None:
        document["fixed"] = [result_record(result) for result in report.fixed]
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def result_record(result: Result) -> dict[str, Any]:
    """One result as plain data; SARIF carries the same under ``properties``."""
    return {
        "rule": result.rule,
        "name": result.name,
        "verdict": result.verdict.value,
        "message": result.message,
        "location": to_plain(result.location),
        "related": [{**to_plain(site.location), "message": site.message} for site in result.related],
        "program": result.program,
        "reason": result.reason,
        "evidence": _evidence(result.evidence) if result.evidence else None,
        "fix": _fix(result.fix) if result.fix else None,
        "help": result.help,
        "docs": result.docs,
    }


def result_of(record: Any) -> Result:
    """The result of a record: what `result_record` made plain."""
    sites = [
        {"location": {name: site[name] for name in site if name != "message"}, "message": site["message"]}
        for site in record["related"]
    ]
    result: Result = from_plain(Result, {**record, "related": sites})
    return result


def program_of(record: Any) -> ProgramRow:
    """The row of a record of ``programs``."""
    row: ProgramRow = from_plain(ProgramRow, record)
    return row


def program_record(row: ProgramRow, *, timings: bool = False) -> dict[str, Any]:
    """One row of ``programs``; wall time only on request, as it differs from run to run."""
    record = to_plain(row)
    seconds = record.pop("seconds")
    if timings:
        record["seconds"] = None if seconds is None else round(seconds, 2)
    return dict(round_floats(record))


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return dict(round_floats(to_plain(evidence)))


def _fix(fix: Fix) -> dict[str, Any]:
    return dict(round_floats(to_plain(fix)))
