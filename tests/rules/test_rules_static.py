"""What is found without running anything: each Bad and each fixture, and nothing in their twins.

A rule of precision `very-high` fails a run by its static finding alone, so these programs are
also the measure of that word.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from warplint.cli.main import main
from warplint.model import Precision
from warplint.rulebook import load_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
EXPECTED = tomllib.loads((FIXTURES / "expected.toml").read_text(encoding="utf-8"))["fixture"]
RULES = load_rules()
WITH_EXAMPLES = [rule for rule in RULES.values() if rule.bad]


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Run `warplint --no-probe` in this process; its status and its results."""
    monkeypatch.chdir(tmp_path)

    def check() -> tuple[int, list[dict]]:
        status = main(["--no-probe", "--format", "json"])
        return status, json.loads(capsys.readouterr().out)["results"]

    return check


def test_every_fixture_is_expected():
    named = {fixture[key] for fixture in EXPECTED for key in ("directory", "twin")}
    assert named == {path.name for path in FIXTURES.iterdir() if path.is_dir()}


@pytest.fixture
def bound(tmp_path, monkeypatch):
    """Make the project one with a Warp that a rule is about, if it is not about all."""

    def bound(rule) -> None:
        if rule.versions.startswith("<"):
            major, _, minor = rule.versions[1:].partition(".")
            for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
                monkeypatch.delenv(name, raising=False)
            (tmp_path / "requirements.txt").write_text(f"warp-lang=={major}.{int(minor) - 1}.0\n")

    return bound


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.id)
def test_bad_is_found(rule, tmp_path, check, bound):
    (tmp_path / "program.py").write_text(rule.bad, encoding="utf-8")
    bound(rule)
    status, results = check()
    if rule.extra.get("found") == "run":  # only the run can see it
        assert (status, results) == (0, [])
        return
    assert [result["rule"] for result in results] == [rule.id]
    assert status == (1 if rule.precision is Precision.VERY_HIGH else 0)


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.id)
def test_good_is_silent(rule, tmp_path, check):
    (tmp_path / "program.py").write_text(rule.good, encoding="utf-8")
    assert check() == (0, [])


@pytest.mark.parametrize("fixture", EXPECTED, ids=lambda fixture: fixture["directory"])
def test_fixture_is_found(fixture, tmp_path, check, bound):
    shutil.copytree(FIXTURES / fixture["directory"], tmp_path, dirs_exist_ok=True)
    rule = RULES[fixture["rule"]]
    bound(rule)
    _, results = check()
    if "run" in (rule.extra.get("found"), fixture.get("found")):
        assert results == []
        return
    (found,) = results
    assert found["rule"] == fixture["rule"]
    assert found["location"]["file"] == fixture["file"]
    assert found["location"]["line"] in fixture["lines"]
    assert found["help"]


@pytest.mark.parametrize("fixture", EXPECTED, ids=lambda fixture: fixture["twin"])
def test_twin_is_silent(fixture, tmp_path, check, bound):
    shutil.copytree(FIXTURES / fixture["twin"], tmp_path, dirs_exist_ok=True)
    bound(RULES[fixture["rule"]])
    assert check() == (0, [])


BOUND = [fixture for fixture in EXPECTED if RULES[fixture["rule"]].versions.startswith("<")]


@pytest.mark.parametrize("fixture", BOUND, ids=lambda fixture: fixture["directory"])
def test_what_is_harmless_on_the_installed_version_is_not_reported(fixture, tmp_path, check):
    shutil.copytree(FIXTURES / fixture["directory"], tmp_path, dirs_exist_ok=True)
    assert check() == (0, [])
