"""Suppression comments."""

from __future__ import annotations

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
    assert not covers("x = 1  # warplint: ignore[]\n", 1)


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
