"""The command line, run in this process, with stand-ins for the stages."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from cli_fakes import TRAIN, Stages

from warplint.cli.main import main


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> Stages:
    fake = Stages()
    monkeypatch.setattr("warplint.cli.stages.analyze", fake.analyze)
    monkeypatch.setattr("warplint.cli.stages.probe", fake.probe)
    return fake


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with one program, and the working directory in it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def warplint(capsys):
    """Run a command line in this process: status, stdout, stderr."""

    def call(*arguments: str) -> SimpleNamespace:
        status = main(list(arguments))
        out, err = capsys.readouterr()
        return SimpleNamespace(status=status, out=out, err=err)

    return call
