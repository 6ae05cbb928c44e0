"""How `warplint verify` is called, and what it says of a wrong call. Nothing is run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from warplint.cli.main import main
from warplint.model import Account, ProgramRow, ProgramStatus

PROGRAM = "import warp as wp\n\nwith wp.Tape() as tape:\n    pass\n"


@pytest.fixture
def probed(monkeypatch, tmp_path):
    """What the probe was asked for, in a directory with one program."""
    asked = []

    def probe(programs, findings, settings, progress):
        asked.append(SimpleNamespace(program=programs[0], settings=settings))
        row = ProgramRow(programs[0].file, programs[0].arguments, "python", "1.19.0", "cpu", STATUS[0])
        return SimpleNamespace(results=(), programs=(row,), notes=(), accounts=(Account(),))

    monkeypatch.setattr("warplint.cli.stages.probe", probe)
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "picture.py").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    (tmp_path / "broken.py").write_text("import warp as wp\ndef step(:\n")
    monkeypatch.chdir(tmp_path)
    return asked


STATUS = [ProgramStatus.VERIFIED]


def test_what_follows_the_program_belongs_to_it(probed, capsys):
    assert main(["verify", "--horizon", "4", "train.py", "--small", "-v", "--horizon", "9"]) == 0
    assert probed[0].program.file == "train.py"
    assert probed[0].program.arguments == ("--small", "-v", "--horizon", "9")
    assert probed[0].program.working_directory == "."
    assert probed[0].settings["horizon"] == 4
    assert capsys.readouterr().out.startswith("the gradients are right\n")


def test_a_program_in_another_encoding_is_run(probed, capsys, tmp_path):
    (tmp_path / "old.py").write_bytes(b"# coding: latin-1\nimport warp\nname = '\xe9'\n")
    assert main(["verify", "old.py"]) == 1  # it could not be read, which is told
    assert probed[0].program.file == "old.py"
    assert "WL002" in capsys.readouterr().out


def test_options_reach_the_probe(probed):
    words = [
        "--budget",
        "20",
        "--iteration",
        "3",
        "--parameter",
        "k",
        "--parameter",
        "m",
        "--set",
        "train.N=2",
    ]
    assert main(["verify", *words, "--tracker", "train.py"]) == 0
    settings = probed[0].settings
    assert (settings["timeout"], settings["iteration"], settings["investigate"]) == (20.0, 3, True)
    assert settings["parameters"] == ("k", "m")
    assert settings["overrides"] == (("train.N", "2"),)
    assert settings["tracker"]


def test_the_command_stays_below_a_minute(probed):
    assert main(["verify", "train.py"]) == 0
    assert probed[0].settings["timeout"] < 60


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "missing argument 'PROGRAM'"),
        (["tain.py"], "no such program: tain.py"),
        (["."], ". is a directory: name the program's file"),
        (["picture.py"], "picture.py cannot be read as Python: "),
        (["broken.py"], "broken.py cannot be read as Python: syntax error (line 2): "),
        (["--horizon", "0", "train.py"], "--horizon: 0 is not in the range x>=1"),
        (["--budget", "-1", "train.py"], "--budget: expected a positive number of seconds, got '-1'"),
        (["--paramter", "k", "train.py"], "unknown option --paramter; did you mean --parameter?"),
        (["--set", "N", "train.py"], "--set: "),
    ],
)
def test_a_wrong_call_is_one_line_and_status_2(probed, capsys, words, message):
    assert main(["verify", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"warplint: error: {message}")
    assert err.count("\n") == 1
    assert probed == []


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "probe.parameters: the program has no such parameter; it has k, m",
            "--parameter: the program has no such parameter; it has k, m",
        ),
        (
            "--set train.N: the program assigns no such module-level constant",
            "--set train.N: the program assigns no such module-level constant",
        ),
        (
            "--iteration 9: it was not reached; k: it has only 4 iterations",
            "--iteration 9: it was not reached",
        ),
    ],
)
def test_what_only_the_run_can_tell_of_the_call_is_an_error_too(probed, monkeypatch, capsys, reason, message):
    def probe(programs, findings, settings, progress):
        row = ProgramRow("train.py", (), "python", "1.19.0", "cpu", ProgramStatus.BLOCKED, reason)
        return SimpleNamespace(results=(), programs=(row,), notes=(), accounts=(Account(),))

    monkeypatch.setattr("warplint.cli.stages.probe", probe)
    assert main(["verify", "train.py"]) == 2
    assert capsys.readouterr().err.startswith(f"warplint: error: {message}")


def test_what_cannot_be_told_fails_only_if_strict(probed, monkeypatch):
    monkeypatch.setitem(globals(), "STATUS", [ProgramStatus.INCONCLUSIVE])
    assert main(["verify", "train.py"]) == 0
    assert main(["verify", "--strict", "train.py"]) == 1
