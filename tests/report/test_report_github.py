"""Workflow commands: one line a result, escaped."""

from __future__ import annotations

from pathlib import Path

from warplint.model import Location, Report, Result, Verdict
from warplint.report import render

GOLDEN = Path(__file__).parent / "golden"


def test_golden(report, context, golden):
    golden(GOLDEN / "report.github", render("github", report, context))


def test_one_line_each_and_no_good_news(report, context):
    lines = render("github", report, context).splitlines()
    assert len(lines) == len(report.results) - 1
    assert all(line.startswith("::") for line in lines)
    assert "WL902" not in "".join(lines)


def test_escapes(context):
    place = Location("a,b:c.py", 2, 1, 2, 4)
    result = Result("WL101", "write-after-read", Verdict.LATENT, "100% of\nit", place)
    line = render("github", Report((result,)), context)
    assert "file=python/a%2Cb%3Ac.py," in line
    assert "::100%25 of%0Ait\n" in line
    assert line.count("\n") == 1


def test_columns_only_on_one_line(context):
    place = Location("a.py", 2, 5, 4, 2)
    line = render("github", Report((Result("WL101", "n", Verdict.NOTE, "m", place),)), context)
    assert "line=2,endLine=4" in line
    assert "col=" not in line
