"""Suppression comments."""

from __future__ import annotations

import pytest

from warplint.source import suppressions


def covers(text: str, line: int, rule: str = "WL101", name: str = "write-after-read") -> bool:
    return suppressions(text).covers(rule, name, (line, line))


def test_on_the_line():
    assert covers("x = 1  # warplint: ignore[WL101]\ny = 2\n", 1)
    assert not covers("x = 1  # warplint: ignore[WL101]\ny = 2\n", 2)


def test_by_id_prefix_name_or_all():
    assert covers("x = 1  # warplint: ignore[WL1]\n", 1)
    assert covers("x = 1  # warplint: ignore[write-after-read]\n", 1)
    assert covers("x = 1  # warplint: ignore[WL201, WL101]\n", 1)
    assert covers("x = 1  # warplint: ignore\n", 1)
    assert not covers("x = 1  # warplint: ignore[WL201]\n", 1)
    assert covers("x = 1  # warplint: ignore[WL201 WL101]\n", 1)
    assert covers("x = 1  # noqa  # warplint: ignore[WL101]\n", 1)


@pytest.mark.parametrize(
    "reason", ["", " # it is meant", "  -- it is meant", " - meant", ": meant", " (meant)"]
)
def test_a_reason_may_follow(reason):
    assert covers(f"x = 1  # warplint: ignore{reason}\n", 1)
    assert covers(f"x = 1  # warplint: ignore[WL101]{reason}\n", 1)


@pytest.mark.parametrize(
    ("comment", "problem"),
    [
        ("ignore[WL501", "its `[` has no `]`"),
        ("ignore [WL104, WL101", "its `[` has no `]`"),
        ("ignore WL104", "rules are named in brackets: `ignore[WL104]`"),
        ("ignore: WL104", "rules are named in brackets: `ignore[WL104]`"),
        ("ignore=WL104", "rules are named in brackets: `ignore[WL104]`"),
        ("ignore-file WL1, WL2", "rules are named in brackets: `ignore-file[WL1]`"),
        ("ignore aliased-state", "rules are named in brackets: `ignore[aliased-state]`"),
        ("ignore because it is meant", "after a bare `ignore`, a reason begins with `--` or `#`"),
        ("ignore[]", "`ignore[]` names no rule"),
        ("ignore-file[ , ]", "`ignore-file[]` names no rule"),
        ("ignroe[WL104]", "there is no `ignroe`; did you mean `ignore`?"),
        ("ignore-files[WL104]", "there is no `ignore-files`; did you mean `ignore-file`?"),
        ("ignore-next-line", "there is no `ignore-next-line`; did you mean `ignore`?"),
        ("disable=WL104", "there is no `disable`; did you mean `ignore`?"),
    ],
)
def test_a_comment_that_cannot_be_understood_suppresses_nothing(comment, problem):
    text = f"x = 1  # warplint: {comment}\n"
    found = suppressions(text)
    assert [(m.line, m.column, m.problem) for m in found.mistakes] == [(1, 8, problem)]
    assert not covers(text, 1, "WL104", "aliased-state")
    assert not covers(text, 1)


def test_prose_is_no_mistake():
    assert suppressions("x = 1  # warplint: see the docs\n") == suppressions("x = 1\n")


def test_first_line_of_a_statement_covers_all_of_it():
    text = "launch(  # warplint: ignore[WL101]\n    a,\n    b,\n)\nlaunch(c)\n"
    assert [covers(text, line) for line in (1, 2, 4, 5)] == [True, True, True, False]


def test_on_a_line_of_its_own_it_speaks_of_the_next_statement():
    text = "# warplint: ignore[WL101] because it is meant\nlaunch(\n    a,\n)\nb = 1\n"
    assert [covers(text, line) for line in (2, 3, 5)] == [True, True, False]


def test_a_compound_statement_is_covered_by_its_header_only():
    text = "for i in x:  # warplint: ignore[WL101]\n    a = 1\n"
    assert [covers(text, line) for line in (1, 2)] == [True, False]


def test_whole_file():
    assert covers("# warplint: ignore-file[WL101]\n\nx = 1\n", 3)
    assert not covers("# warplint: ignore-file[WL201]\n\nx = 1\n", 3)


def test_inside_a_string_it_is_text():
    assert not covers("x = '# warplint: ignore[WL101]'\n", 1)


def test_unused_ones_are_known():
    found = suppressions("a = 1  # warplint: ignore[WL101]\nb = 2  # warplint: ignore[WL201]\n")
    assert found.covers("WL101", "write-after-read", (1, 1))
    (unused,) = found.unused()
    assert unused.line == 2
    assert unused.rules == ("WL201",)


def test_broken_text_keeps_what_was_read():
    assert covers("x = 1  # warplint: ignore[WL101]\ny = (\n", 1)
