"""Which Warp a project uses is read off its environments and its files; nothing is run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warplint import pythons
from warplint.source.installed import Installed
from warplint.versions import allowed, concern


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    """No environment is active."""
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def nothing_beside_warplint(monkeypatch, tmp_path_factory):
    """As where warplint is installed apart from everything."""
    empty = tmp_path_factory.mktemp("apart")
    monkeypatch.setattr("sys.executable", str(empty / "bin" / "python"))
    monkeypatch.setattr("sys.path", [str(empty)])


def environment(directory: Path, warp: str, *, metadata: bool = True) -> Path:
    """A virtual environment with nothing in it but what tells the version of Warp."""
    packages = directory / "lib" / "python3.11" / "site-packages"
    (packages / "warp").mkdir(parents=True)
    (packages / "warp" / "config.py").write_text(f'version: str = "{warp}"\n')
    if metadata:
        (packages / f"warp_lang-{warp}.dist-info").mkdir()
    (directory / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    (directory / "bin").mkdir()
    (directory / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    os.chmod(directory / "bin" / "python", 0o755)
    return directory / "bin" / "python"


@pytest.mark.parametrize("metadata", [True, False])
def test_the_environment_nearest_to_the_program(tmp_path, metadata):
    environment(tmp_path / ".venv", "1.16.0", metadata=metadata)
    environment(tmp_path / "old" / ".venv", "1.13.1", metadata=metadata)
    installed = Installed(tmp_path)
    assert installed.of(tmp_path / "fit.py") == (1, 16)
    assert installed.of(Path("old/fit.py")) == (1, 13)
    assert installed.of(Path("new/deep/fit.py")) == (1, 16)


def test_the_active_environment_comes_first(tmp_path, monkeypatch):
    environment(tmp_path / ".venv", "1.16.0")
    environment(tmp_path / "active", "1.18.0")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    assert Installed(tmp_path).of(tmp_path / "fit.py") == (1, 18)


def test_an_interpreter_that_was_named_is_the_one(tmp_path):
    environment(tmp_path / ".venv", "1.16.0")
    python = environment(tmp_path / "named", "1.14.0")
    assert Installed(tmp_path, str(python)).of(tmp_path / "fit.py") == (1, 14)
    assert Installed(tmp_path, "no-such-python").of(tmp_path / "fit.py") is None


def test_an_environment_without_warp_says_nothing(tmp_path):
    environment(tmp_path / ".venv", "1.16.0")
    environment(tmp_path / "docs" / ".venv", "1.18.0")
    packages = tmp_path / "docs" / ".venv" / "lib" / "python3.11" / "site-packages"
    (packages / "warp_lang-1.18.0.dist-info").rmdir()
    (packages / "warp" / "config.py").unlink()
    assert Installed(tmp_path).of(tmp_path / "docs" / "fit.py") == (1, 16)


LOCKS = {
    "uv.lock": '[[package]]\nname = "warp-lang"\nversion = "1.16.0"\n',
    "poetry.lock": '[[package]]\nname = "warp-lang"\nversion = "1.16.0"\ndescription = ""\n',
    "Pipfile.lock": '{"default": {"warp-lang": {"hashes": ["sha256:0"], "version": "==1.16.0"}}}',
}
REQUIREMENTS = {
    "requirements.txt": "# warp-lang==1.13.0\nnumpy\nwarp-lang==1.16.0  # the last good one\n",
    "requirements-dev.txt": "warp-lang ~= 1.16.0\n",
    "pyproject.toml": '[project]\ndependencies = ["numpy>=2", "warp-lang>=1.14,<1.17"]\n',
    "environment.yml": "dependencies:\n  - pip:\n    - warp-lang[extras]==1.16.*\n",
}
POETRY = '[tool.poetry.dependencies]\npython = "^3.10"\nwarp-lang = {version = "~1.16", extras = ["x"]}\n'


@pytest.mark.parametrize(
    ("name", "text"), [*LOCKS.items(), *REQUIREMENTS.items(), ("pyproject.toml", POETRY)]
)
def test_what_the_project_asks_for(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    assert Installed(tmp_path).of(tmp_path / "sub" / "fit.py") == (1, 16)


def test_a_lock_says_more_than_a_requirement(tmp_path):
    (tmp_path / "pyproject.toml").write_text(REQUIREMENTS["pyproject.toml"])
    (tmp_path / "uv.lock").write_text(LOCKS["uv.lock"].replace("1.16", "1.14"))
    assert Installed(tmp_path).of(tmp_path / "fit.py") == (1, 14)


def test_the_installed_one_where_it_is_allowed(tmp_path):
    own = Installed(tmp_path).of(tmp_path / "fit.py")
    assert own is not None
    assert own >= (1, 13)
    (tmp_path / "requirements.txt").write_text("warp-lang>=1.13\n")
    assert Installed(tmp_path).of(tmp_path / "fit.py") == own


def test_the_newest_that_is_allowed_where_none_is_installed(tmp_path, nothing_beside_warplint):
    assert Installed(tmp_path).of(tmp_path / "fit.py") is None
    (tmp_path / "requirements.txt").write_text("warp-lang>=1.13,<1.15\n")
    assert Installed(tmp_path).of(tmp_path / "fit.py") == (1, 14)


def test_the_probe_looks_in_the_same_places(tmp_path):
    environment(tmp_path / ".venv", "1.16.0")
    assert [origin for _, origin in pythons.candidates(tmp_path / "fit.py", tmp_path)] == [
        ".venv of the project",
        pythons.OWN,
    ]


@pytest.mark.parametrize(
    ("bounds", "minors"),
    [
        ("", range(13, 20)),
        (">=1.13", range(13, 20)),
        ("<1.17", range(13, 17)),
        (">=1.15,<1.18", range(15, 18)),
        ("~=1.16.0", [16]),
        ("~=1.16", range(16, 20)),
        ("^1.17", range(17, 20)),
        ("==1.16.*", [16]),
        ("!=1.16.0", [13, 14, 15, 17, 18, 19]),
        (">1.18.0", [19]),
        (">=1", range(13, 20)),
        ("<2", range(13, 20)),
        ("rubbish", range(13, 20)),
    ],
)
def test_bounds(bounds, minors):
    assert [m for m in range(13, 20) if concern(bounds, (1, m))] == list(minors)


def test_requirements_that_contradict_each_other_belong_to_different_installations():
    assert allowed([">=1.14", "<1.16"]) == {(1, 14), (1, 15)}
    assert allowed(["==1.13.0", "==1.19.0"]) == {(1, 13), (1, 19)}
    assert allowed([">=1.20"]) == frozenset()
