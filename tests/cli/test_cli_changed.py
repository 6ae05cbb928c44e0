"""`--changed-since`: the programs that a change may have to do with."""

from __future__ import annotations

import subprocess

import pytest
from cli_fakes import TRAIN

from warplint.model import Finding, Location

PROGRAM = "from lib.steps import step\n" + TRAIN


@pytest.fixture
def git(project, stages):
    """A repository with two programs, of which one imports the library."""

    def call(*arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=project, check=True, capture_output=True)

    (project / ".git").rmdir()
    (project / "lib").mkdir()
    (project / "lib" / "__init__.py").write_text("")
    (project / "lib" / "steps.py").write_text("import warp as wp\n\nstep = 1\n")
    (project / "train.py").write_text(PROGRAM)
    (project / "other.py").write_text(TRAIN)
    call("init", "-q", "-b", "main")
    call("add", ".")
    call("commit", "-q", "-m", "first")
    names = ("train.py", "other.py", "lib/steps.py")
    stages.findings = tuple(Finding("WL103", "m", Location(name, 2)) for name in names)
    return call


@pytest.fixture
def concerned(warplint):
    """The programs that would be run, and the files that results are shown of."""

    def ask(*options: str) -> tuple[list[str], set[str]]:
        options = options or ("--changed-since", "HEAD")
        listed = warplint("--list-programs", *options)
        assert listed.status == 0, listed
        programs = [line.split()[0] for line in listed.out.splitlines() if line.endswith("  run")]
        shown = warplint("--no-probe", "-q", *options).out
        return programs, {line.partition(":")[0] for line in shown.splitlines()}

    return ask


def test_nothing_has_changed(git, concerned, warplint, stages):
    assert concerned() == ([], set())
    run = warplint("--changed-since", "HEAD")
    assert (run.status, run.err) == (0, "")
    assert "nothing that it imports has changed" in warplint("--list-programs", "--changed-since", "HEAD").out


def test_a_program_that_has_changed(git, concerned, project):
    (project / "other.py").write_text(TRAIN + "\n")
    assert concerned() == (["other.py"], {"other.py"})


def test_programs_that_import_what_has_changed(git, concerned, project):
    (project / "lib" / "steps.py").write_text("import warp as wp\n\nstep = 2\n")
    assert concerned() == (["train.py"], {"train.py", "lib/steps.py"})
    git("commit", "-q", "-a", "-m", "second")
    assert concerned() == ([], set())
    assert concerned("--changed-since", "HEAD~1")[0] == ["train.py"]


def test_files_that_git_does_not_know_yet(git, concerned, project):
    (project / "new.py").write_text(TRAIN)
    assert concerned()[0] == ["new.py"]
    (project / ".gitignore").write_text("new.py\n")
    assert concerned()[0] == []


def test_a_module_that_is_gone(git, concerned, project):
    (project / "lib" / "steps.py").unlink()
    assert concerned()[0] == ["train.py"]


def test_another_configuration_concerns_everything(git, concerned, project):
    (project / "warplint.toml").write_text("no-cache = true\n")
    assert concerned()[0] == ["other.py", "train.py"]


def test_since_a_branch_began(git, concerned, project):
    git("checkout", "-q", "-b", "topic")
    (project / "other.py").write_text(TRAIN + "\n")
    git("commit", "-q", "-a", "-m", "topic")
    git("checkout", "-q", "main")
    (project / "train.py").write_text(PROGRAM + "\n")
    git("commit", "-q", "-a", "-m", "main goes on")
    git("checkout", "-q", "topic")
    assert concerned("--changed-since", "main...")[0] == ["other.py"]
    assert concerned("--changed-since", "main")[0] == ["other.py", "train.py"]


def test_from_a_directory_below(git, concerned, project, monkeypatch, stages):
    (project / "other.py").write_text(TRAIN + "\n")
    monkeypatch.chdir(project / "lib")
    stages.findings = ()
    assert concerned("..", "--changed-since", "HEAD")[0] == [(project / "other.py").as_posix()]


@pytest.mark.parametrize("revision", ["nowhere", "--output=x", ""])
def test_no_such_revision(git, warplint, revision):
    run = warplint(f"--changed-since={revision}")
    if not revision:
        assert run.status == 2
    assert (run.status, run.out) == (2, "")
    assert run.err == f"warplint: error: --changed-since: unknown revision '{revision}'\n"


def test_no_repository(project, stages, warplint):
    run = warplint("--changed-since", "HEAD")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("warplint: error: --changed-since: ")
    assert "not a git repository" in run.err


def test_a_git_that_says_nothing(project, stages, warplint, monkeypatch):
    (project / "bin").mkdir()
    (project / "bin" / "git").write_text("#!/bin/sh\nexit 3\n")
    (project / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{project / 'bin'}:/bin:/usr/bin")
    assert warplint("--changed-since", "HEAD").err == "warplint: error: --changed-since: git failed\n"


def test_no_git(project, stages, warplint, monkeypatch):
    monkeypatch.setenv("PATH", "")
    run = warplint("--changed-since", "HEAD")
    assert (run.status, run.err) == (2, "warplint: error: --changed-since: git was not found\n")
