"""The rulebook: every page is complete, and its programs are programs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile

import pytest

from warplint.model import Rule
from warplint.rulebook import (
    SECTIONS,
    RulebookError,
    example,
    load_rules,
    parse_page,
    rules_directory,
    sections,
)

RULES = load_rules()
PAGES = list(RULES.values())


@pytest.fixture(params=PAGES, ids=lambda rule: rule.id)
def rule(request) -> Rule:
    return request.param


def test_front_matter(rule):
    assert re.fullmatch(r"WL\d{3}", rule.id)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert not rule.summary.endswith(".")
    assert len(rule.summary) <= 110
    assert rule.versions
    assert rule.docs == "" or rule.docs.startswith("https://nvidia.github.io/warp/stable/")


def test_sections_are_known_and_in_order(rule):
    titles = [title for title in sections(rule.text) if title]
    assert set(titles) <= set(SECTIONS)
    assert titles == sorted(titles, key=SECTIONS.index)
    assert titles[:3] == list(SECTIONS[:3])


def test_examples_are_there_or_said_not_to_be(rule):
    if rule.extra.get("examples") == "none":
        assert not rule.bad
        assert not rule.good
    else:
        assert rule.bad
        assert rule.good
        assert rule.bad != rule.good


def test_examples_are_complete_programs(rule):
    for text in filter(None, (rule.bad, rule.good)):
        compile(text, f"{rule.id}.py", "exec")
        names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        # The probe measures what an optimizer reads: the gradient must be read and used.
        assert {"Tape", "backward", "grad", "assign", "launch"} <= names
        assert len(text.splitlines()) <= 60


def test_text_is_readable(rule):
    for line in rule.text.splitlines():
        assert len(line) <= 120 or "http" in line, line
    assert "\t" not in rule.text


def test_links_between_pages_lead_somewhere(rule):
    for target in re.findall(r"\]\((WL[^)]*\.md)\)", rule.text):
        assert (rules_directory() / target).is_file()


def test_ids_and_names_are_unique():
    assert len({rule.name for rule in PAGES}) == len(PAGES)
    assert list(RULES) == sorted(RULES)


PAGE = """\
+++
id = "WL101"
name = "x"
summary = "s"
level = "error"
precision = "high"
versions = "any"
docs = ""
+++
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# no front matter\n", "no front matter between '+++' lines"),
        (PAGE.replace('summary = "s"\n', ""), "front matter lacks summary"),
        (PAGE.replace('"error"', '"fatal"'), "level 'fatal' is not one of error, warning, note"),
        (PAGE.replace('"high"', '"certain"'), "precision 'certain' is unknown"),
        (PAGE.replace('"x"', '"y"'), "front matter says WL101 y"),
        (PAGE.replace('id = "WL101"', "id ="), "front matter: "),
    ],
)
def test_a_broken_page_names_itself(text, message):
    with pytest.raises(RulebookError, match=re.escape(f"WL101-x.md: {message}")):
        parse_page(text, "WL101-x.md")


def test_headings_inside_code_do_not_split_a_page():
    text = "## Bad\n\n```python\n## not a heading\nx = 1\n```\n\n## Good\n\nnothing\n"
    assert list(sections(text)) == ["Bad", "Good"]
    assert example(text, "Bad") == "## not a heading\nx = 1\n"
    assert example(text, "Good") == ""


def test_a_wheel_carries_the_pages(tmp_path, repository):
    pytest.importorskip("hatchling")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=repository,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "installed")
    assert sum(name.startswith("warplint/_rules/WL") for name in names) == len(PAGES)
    code = "import warplint.rulebook as r; print(r.rules_directory()); print(len(r.load_rules()))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "installed",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    directory, count = done.stdout.splitlines()
    assert directory.endswith("installed/warplint/_rules")
    assert int(count) == len(PAGES)
