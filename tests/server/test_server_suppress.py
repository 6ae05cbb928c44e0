"""Where a comment is written: wherever that is, it is obeyed, and the code is still the same code."""

from __future__ import annotations

import ast

import pytest

from warplint.config import ConfigError
from warplint.model import Edit, Location
from warplint.server.settings import Settings, merged, read
from warplint.server.suppress import suppress_here, suppress_in_file
from warplint.source.suppressions import suppressions


def applied(lines: list[str], edit: Edit) -> str:
    place = edit.location
    line = lines[place.line - 1]
    changed = line[: place.column - 1] + edit.text + line[place.end_column - 1 :]
    return "\n".join([*lines[: place.line - 1], changed, *lines[place.line :]])


@pytest.mark.parametrize(
    ("text", "line", "after"),
    [
        ("f(x)", 1, "f(x)  # warplint: ignore[WL106]"),
        ("f(x)   ", 1, "f(x)  # warplint: ignore[WL106]"),
        ("f(x)  # why", 1, "f(x)  # why  # warplint: ignore[WL106]"),
        ("f(x)  # warplint: ignore[WL101]", 1, "f(x)  # warplint: ignore[WL101, WL106]"),
        ("f(x)  # warplint: ignore[]", 1, "f(x)  # warplint: ignore[WL106]"),
        ("# warplint: ignore[WL101]\nf(x)", 2, "# warplint: ignore[WL101, WL106]\nf(x)"),
        ("f(1)  # warplint: ignore[WL101]\nf(x)", 2, None),
        ("if x:\n    f(x, \\\n      y)", 2, "if x:\n    # warplint: ignore[WL106]\n    f(x, \\\n      y)"),
        ('f("""a\nb""")', 1, '# warplint: ignore[WL106]\nf("""a\nb""")'),
        ("f(\n    x,\n)", 1, "f(  # warplint: ignore[WL106]\n    x,\n)"),
        ("f(\n    g(x),\n)", 2, None),
        ("f(x", 1, "f(x  # warplint: ignore[WL106]"),
    ],
)
def test_a_comment_for_one_place(text, line, after):
    lines = text.split("\n")
    made = applied(lines, suppress_here(lines, Location("a.py", line, 1), "WL106"))
    assert after is None or made == after
    if text != "f(x":
        assert ast.dump(ast.parse(made)) == ast.dump(ast.parse(text))
        moved = line + made.count("\n") - text.count("\n")
        assert suppressions(made).covers("WL106", "x", (moved, moved))


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("x = 1", "# warplint: ignore-file[WL106]\nx = 1"),
        (
            "#!/bin/python\n# coding: utf-8\nx",
            "#!/bin/python\n# coding: utf-8\n# warplint: ignore-file[WL106]\nx",
        ),
        ("%%time\nx = 1", "%%time\n# warplint: ignore-file[WL106]\nx = 1"),
        ("x = 1\n# warplint: ignore-file[WL1]", "x = 1\n# warplint: ignore-file[WL1, WL106]"),
        ("", "# warplint: ignore-file[WL106]\n"),
    ],
)
def test_a_comment_for_the_file(text, after):
    lines = text.split("\n")
    assert applied(lines, suppress_in_file(lines, Location("a.py", 1), "WL106")) == after


def test_settings_say_whether_programs_may_run_and_the_rest_is_the_configuration():
    assert read(None) == Settings()
    assert read({"probe": True}) == Settings(run=True)
    assert read({"no-probe": True}).run is False
    given = read({"ignore": ["WL1"], "probe": {"enabled": True, "on-save": True, "timeout": 5}})
    assert given == Settings({"ignore": ["WL1"], "probe": {"timeout": 5}}, True, True)
    assert read({"ignore": {}}).table == {"ignore": []}  # as Lua writes an empty list
    assert read({"select": None}) == Settings()  # editors say null for what is not set


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ([], "expected a table"),
        ({"probe": "yes"}, "probe: expected true, false or a table"),
        ({"probe": {"enabled": 1}}, "probe.enabled: expected true or false"),
        ({"probe": {"timeout": "5"}}, "probe.timeout: expected a number"),
        ({"selct": []}, "unknown key 'selct'; did you mean 'select'?"),
    ],
)
def test_a_mistake_in_the_settings_is_named(settings, words):
    with pytest.raises(ConfigError, match="editor settings") as error:
        read(settings)
    assert words in str(error.value)


def test_of_two_layers_the_second_wins_key_by_key():
    first, second = {"ignore": ["WL1"], "probe": {"timeout": 5}}, {"probe": {"enabled": True}, "ignore": None}
    assert merged(first, second) == {"ignore": ["WL1"], "probe": {"timeout": 5, "enabled": True}}
    assert merged(None, second)["probe"] == {"enabled": True}
