"""The terminal report: golden output, colour, width, bounds."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from warplint.model import Location, ProgramRow, ProgramStatus, Report, Result, Verdict
from warplint.report import render
from warplint.report.numbers import percent, short, significant

GOLDEN = Path(__file__).parent / "golden"


def test_golden(report, context, golden):
    golden(GOLDEN / "report.txt", render("text", report, context))


def test_golden_with_everything_on(report, context, golden):
    context = dataclasses.replace(context, verbose=True, statistics=True, timings=True, width=72)
    golden(GOLDEN / "report-verbose.txt", render("text", report, context))


def test_golden_quiet(report, context, golden):
    golden(
        GOLDEN / "report-quiet.txt",
        render("text", report, dataclasses.replace(context, quiet=True)),
    )


def test_colour_changes_nothing_but_colour(report, context):
    plain = render("text", report, context)
    coloured = render("text", report, dataclasses.replace(context, color=True))
    assert "\033[" not in plain
    assert re.sub(r"\033\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("width", [40, 60, 100])
def test_lines_fit_except_where_a_word_or_a_table_cannot(report, context, width):
    text = render("text", report, dataclasses.replace(context, width=width))
    for line in text.splitlines():
        code = " | " in line or line.lstrip().startswith(
            ("direction", "gradient", "sign", "coordinate", "zero")
        )
        programs = "wrong" in line or "blocked" in line
        header = re.match(r"\S+:\d+:\d+ ", line)
        summary = " in 4 files" in line
        assert code or programs or header or summary or len(line) <= width, line


def test_carets_stay_below_their_code_behind_a_tab(report, context):
    lines = render("text", report, context).splitlines()
    at = next(i for i, line in enumerate(lines) if "loss.zero_()" in line and "|" in line)
    assert lines[at + 1].index("^") == lines[at].index("loss.zero_()")


def test_nothing_found(context):
    assert render("text", Report(), context) == "nothing found in 4 files\n"


def test_a_line_beyond_the_end_of_the_file_is_no_crash(context):
    place = Location("sim.py", 4000, 3)
    result = Result("WL101", "write-after-read", Verdict.UNVERIFIED, "gone", place, reason="timeout")
    assert "sim.py:4000:3 WL101" in render("text", Report((result,)), context)


def test_control_characters_of_the_checked_code_do_not_reach_the_terminal(context):
    context = dataclasses.replace(context, read_source={"x.py": "a = '\033[2J'\n"}.get)
    result = Result("WL101", "write-after-read", Verdict.NOTE, "x", Location("x.py", 1))
    assert "\033" not in render("text", Report((result,)), context)


def test_lines_are_counted_as_python_counts_them(context):
    context = dataclasses.replace(context, read_source={"x.py": "a = 1\n\x0c\nb = 2\r\nc = 3\n"}.get)
    result = Result("WL101", "n", Verdict.LATENT, "x", Location("x.py", 4, 1, 4, 2))
    assert "4 | c = 3" in render("text", Report((result,)), context)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.117, "11.7%"),
        (0.00031, "0.031%"),
        (1.0, "100%"),
        (0.0, "0%"),
        (1e-9, "<0.001%"),
        (12.5, "1250%"),
        (1e7, "1.0e+09%"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
    ],
)
def test_percent(value, text):
    assert percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.386, "12.386"), (-0.0338, "-0.033800"), (0.0, "0"), (1.25e-7, "1.250e-07"), (123456.7, "123457")],
)
def test_short(value, text):
    assert short(value) == text


def test_significant():
    assert significant(0.12345678) == 0.123457
    assert significant(-0.0) == 0.0
    assert significant(float("-inf")) == "-inf"


def test_a_reason_is_said_once(context):
    reason = "the program was killed by SIGSEGV"
    blocked = Result(
        "WL903",
        "probe-blocked",
        Verdict.NOTE,
        f"this program could not be probed: {reason}",
        Location("train.py", 1),
        program="train.py",
        reason=reason,
    )
    rows = (ProgramRow("train.py", (), None, None, None, ProgramStatus.BLOCKED, reason=reason),)
    report = Report((blocked,), rows)
    assert render("text", report, context).count("SIGSEGV") == 1
    assert render("github", report, context).count("SIGSEGV") == 1


def test_control_characters_are_shown_and_not_obeyed(context):
    result = Result("WL101", "n", Verdict.NOTE, "raised: oops\nand \x1b[31mmore", Location("na\nme.py", 1))
    row = ProgramRow("na\nme.py", (), None, None, None, ProgramStatus.BLOCKED, reason="a\nb")
    text = render("text", Report((result,), (row,)), dataclasses.replace(context, quiet=True))
    assert text == "na\\nme.py:1:1 WL101 n  note: raised: oops\\nand \\x1b[31mmore\n"
    text = render("text", Report((result,), (row,)), context)
    assert "\x1b" not in text
    assert r"na\nme.py  blocked" in text
    assert r"a\nb" in text


def test_a_notebook_is_not_told_to_be_named(context):
    place = Location("fit.ipynb", 4, 24, cell=5)
    found = Result("WL204", "host-round-trip", Verdict.UNVERIFIED, "read by the host", place)
    told = render("text", Report((dataclasses.replace(found, reason="no-entry-point"),)), context)
    assert "not proved: no-entry-point (notebooks are read, not run)" in told
    assert "--entry" not in told
