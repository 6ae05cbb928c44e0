"""The configuration: where it is found, and what its values become."""

from __future__ import annotations

import os

import pytest

from warplint.cli import stages
from warplint.cli.errors import CallError
from warplint.config import ConfigError, find_config, load_config, parse_assignment

EVERYTHING = """
[tool.warplint]
select = ["WL1"]
ignore = "WL101"
exclude = ["old/"]
format = "sarif"
static-fail-on = "high"
strict = true
exit-zero = false
statistics = true
show-dismissed = true
quiet = false
verbose = false
no-probe = false
jobs = 4
per-file-ignores = { "tests/*.py" = ["WL1", "WL2"] }

[tool.warplint.probe]
entries = ["train.py --small"]
set = { train.STEPS = 8, train.MODE = "fast", pkg.sub.DT = 0.5 }
timeout = 30
budget = 300.5
python = ".venv/bin/python"
device = "cpu"
exclude = ["render.py"]
env = { B = "2", A = "1" }
objective = "loss"
parameters = ["k"]
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "pyproject.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_everything(write):
    config = load_config(write(EVERYTHING))
    assert config.select == ("WL1",)
    assert config.ignore == ("WL101",)
    assert config.static_fail_on == "high"
    assert config.strict is True
    assert config.jobs == 4
    assert config.per_file_ignores == (("tests/*.py", ("WL1", "WL2")),)
    assert config.probe.set == (("train.STEPS", "8"), ("train.MODE", "'fast'"), ("pkg.sub.DT", "0.5"))
    assert config.probe.timeout == 30.0
    assert config.probe.budget == 300.5
    assert config.probe.env == (("A", "1"), ("B", "2"))


def test_own_file_without_and_with_the_table(write):
    assert load_config(write('select = ["WL1"]\n[probe]\ntimeout = 3\n', "warplint.toml")).probe.timeout == 3
    assert load_config(write("[tool.warplint]\nstrict = true\n", "warplint.toml")).strict


def test_byte_order_mark(tmp_path):
    path = tmp_path / "warplint.toml"
    path.write_bytes("strict = true\n".encode("utf-8-sig"))
    assert load_config(path).strict


def test_list_form_of_set_is_taken_as_on_the_command_line(write):
    config = load_config(write('[probe]\nset = ["train.STEPS=2 * 4"]\n', "warplint.toml"))
    assert config.probe.set == (("train.STEPS", "2 * 4"),)


def test_switching_the_probe_off_by_the_name_of_the_flag(write):
    assert load_config(write("probe = false\n", "warplint.toml")).no_probe
    assert not load_config(write("probe = true\n", "warplint.toml")).no_probe


def test_none_gives_defaults():
    config = load_config(None)
    assert config.format == "text"
    assert config.static_fail_on == "very-high"


def test_own_file_wins_over_pyproject(write, tmp_path):
    write("[tool.warplint]\n")
    own = write("", "warplint.toml")
    assert find_config([tmp_path], tmp_path) == own


def test_pyproject_of_others_is_passed_over(write, tmp_path):
    outer = write("[tool.warplint]\n")
    inner = tmp_path / "package"
    inner.mkdir()
    (inner / "pyproject.toml").write_text('[project]\nname = "not-warplint"\n')
    assert find_config([inner / "a.py"], inner) == outer


def test_common_directory_of_several_paths(write, tmp_path):
    write("[tool.warplint]\n")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "warplint.toml").write_text("")
    assert find_config([tmp_path / "a"], tmp_path).parent.name == "a"
    assert find_config([tmp_path / "a", tmp_path / "b"], tmp_path).name == "pyproject.toml"


def test_a_broken_pyproject_that_speaks_of_warplint_is_an_error(write, tmp_path):
    write("[tool.warplint\n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        find_config([tmp_path], tmp_path)


@pytest.mark.parametrize("text", ["", "=3", "a.=3", "a b=3", "3a=1"])
def test_bad_assignments(text):
    with pytest.raises(ValueError, match="is not of the form"):
        parse_assignment(text)


def test_assignment():
    assert parse_assignment("a.b.C = [1, 2]") == ("a.b.C", "[1, 2]")
    assert parse_assignment("A=x==y") == ("A", "x==y")


def test_a_setting_that_the_probe_does_not_know_is_said(tmp_path):
    with pytest.raises(CallError, match=r"probe\.objectiv is not supported"):
        stages.probe((), (), {"root": tmp_path, "objectiv": "loss"}, lambda event: None)


def test_a_directory_that_is_closed_has_no_configuration(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir()
    stat = os.stat

    def refuse(path, *arguments, **more):
        if os.path.dirname(os.fspath(path)) == str(closed):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, *arguments, **more)

    monkeypatch.setattr(os, "stat", refuse)
    (tmp_path / ".git").mkdir()
    assert find_config([closed], tmp_path) is None
