"""The JSON report: schema 1 of the contract."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from warplint.model import Evidence, Location, Report, Result, Verdict
from warplint.report import render
from warplint.report.json import result_record

GOLDEN = Path(__file__).parent / "golden"


def test_golden(report, context, golden):
    golden(GOLDEN / "report.json", render("json", report, context))


def test_shape(report, context):
    document = json.loads(render("json", report, context))
    assert list(document) == ["schema", "warplint", "results", "programs"]
    assert document["schema"] == 1
    assert set(document["programs"][0]) == {
        "program",
        "arguments",
        "interpreter",
        "warp",
        "device",
        "status",
        "reason",
        "parameters",
        "substitutions",
        "forward_passes",
    }
    result = next(item for item in document["results"] if item["rule"] == "WL103")
    assert result["location"] == {
        "file": "train.py",
        "line": 12,
        "column": 17,
        "end_line": 12,
        "end_column": 100,
    }
    assert result["evidence"]["checks"][0]["relative_error"] == 0.117467
    assert {"ad", "fd", "noise", "direction"} <= set(result["evidence"]["checks"][0])


def test_seconds_only_with_timings(report, context):
    assert "seconds" not in render("json", report, context)
    timed = json.loads(render("json", report, dataclasses.replace(context, timings=True)))
    assert timed["programs"][0]["seconds"] == 1.23
    assert timed["programs"][1]["seconds"] is None


def test_not_a_number_is_still_json(report, context):
    check = dataclasses.replace(
        report.results[2].evidence.checks[0], ad=float("nan"), relative_error=float("inf")
    )
    evidence = dataclasses.replace(report.results[2].evidence, checks=(check,))
    result = dataclasses.replace(report.results[2], evidence=evidence)
    for format in ("json", "sarif"):
        text = render(format, Report((result,)), context)
        json.loads(text, parse_constant=lambda name: (_ for _ in ()).throw(AssertionError(name)))
    assert result_record(result)["evidence"]["checks"][0]["ad"] == "nan"


def test_the_same_report_gives_the_same_bytes(report, context):
    assert render("json", report, context) == render("json", report, context)


def test_empty_values_are_null_not_missing():
    record = result_record(Result("WL101", "n", Verdict.NOTE, "m", Location("a.py", 1)))
    assert record["evidence"] is None
    assert record["fix"] is None
    assert record["reason"] is None
    empty = Evidence("1", "cpu", "p", "o", (), "zero", 0)
    assert result_record(dataclasses.replace(_result(), evidence=empty))["evidence"]["counterfactual"] is None


def _result() -> Result:
    return Result("WL101", "n", Verdict.NOTE, "m", Location("a.py", 1))
