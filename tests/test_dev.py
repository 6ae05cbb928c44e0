"""The scaffold: what it writes is a rule the rest of the house accepts."""

from __future__ import annotations

import ast

import pytest

from warplint.dev.__main__ import main
from warplint.rulebook import SECTIONS, parse_page, sections


@pytest.fixture
def root(tmp_path):
    for folder in ("rules", "fixtures", "warplint/checks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "fixtures" / "expected.toml").write_text("# fixtures\n", encoding="utf-8")
    return tmp_path


def test_a_new_rule_has_a_page_a_check_and_a_fixture_with_its_twin(root, capsys):
    arguments = ["new-rule", "WL299", "lost-gradient", "a gradient is lost on the way", "--root", str(root)]
    assert main(arguments) == 0
    written = capsys.readouterr().out.split()
    assert written == [
        "rules/WL299-lost-gradient.md",
        "warplint/checks/wl299_lost_gradient.py",
        "fixtures/wl299_lost_gradient/program.py",
        "fixtures/wl299_lost_gradient_mended/program.py",
        "fixtures/expected.toml",
    ]
    page = (root / written[0]).read_text(encoding="utf-8")
    rule = parse_page(page, "WL299-lost-gradient.md")
    assert (rule.id, rule.name) == ("WL299", "lost-gradient")
    assert [t for t in sections(rule.text) if t] == [t for t in SECTIONS if t in sections(rule.text)]
    names = {n.attr for n in ast.walk(ast.parse(rule.bad)) if isinstance(n, ast.Attribute)}
    assert {"Tape", "backward", "grad", "assign", "launch"} <= names
    compile((root / written[1]).read_text(encoding="utf-8"), "check.py", "exec")
    assert 'rule = "WL299"' in (root / written[4]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rule", "name", "message"),
    [
        ("299", "lost-gradient", "an id is WL and three digits"),
        ("WL299", "Lost", "a name is lower case words"),
        ("WL101", "again", "WL101 is taken by WL101-known.md"),
    ],
)
def test_what_is_no_rule_is_refused(root, rule, name, message):
    (root / "rules" / "WL101-known.md").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit, match=message):
        main(["new-rule", rule, name, "something is wrong", "--root", str(root)])
