"""On a terminal: colour and a progress bar; elsewhere neither."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest
from cli_fakes import TRAIN

from warplint.cli.main import main

RUN = "from warplint.cli.main import run; run()"


def on_a_terminal(directory, *arguments: str, **environment: str) -> str:
    """Run a command line with a terminal for stdout; what it printed there."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, *arguments],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    ):
        os.close(slave)
        chunks = []
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(master)
    return b"".join(chunks).decode()


@pytest.fixture
def broken(tmp_path):
    (tmp_path / "broken.py").write_text("import warp\ndef (\n")
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def test_colour_on_a_terminal(broken):
    assert "\033[1;31m" in on_a_terminal(broken, "--no-probe", NO_COLOR="")


def test_no_color_is_honoured(broken):
    text = on_a_terminal(broken, "--no-probe", NO_COLOR="1")
    assert "WL002" in text
    assert "\033" not in text


def test_json_has_no_colour_on_a_terminal(broken):
    assert "\033" not in on_a_terminal(broken, "--no-probe", "--format", "json", NO_COLOR="")


def test_a_terminal_of_unknown_width_gets_the_usual_one(broken):
    lines = on_a_terminal(broken, "--no-probe", NO_COLOR="1").splitlines()
    assert max(map(len, lines)) > 50


def test_a_name_that_is_not_utf_8_in_every_report(tmp_path, monkeypatch, capsys):
    name = os.fsdecode(b"tr\xffain.py")
    (tmp_path / name).write_text("import warp\ndef (\n")
    monkeypatch.chdir(tmp_path)
    outputs = [f"--output={kind}=report.{kind}" for kind in ("text", "json", "sarif")]
    call = ["--no-probe", *outputs, "--write-baseline", "baseline.json"]
    assert main(["--format", "github", *call, name]) == 0
    assert main(["--no-probe", *outputs, name]) == 1
    for kind in ("text", "json", "sarif"):
        assert "tr\\udcffain.py" in (tmp_path / f"report.{kind}").read_text(encoding="utf-8")
    (result,) = json.loads((tmp_path / "report.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "tr%FFain.py"
    for kind in ("json", "sarif"):
        capsys.readouterr()
        main(["merge", f"report.{kind}"])
        assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / f"report.{kind}").read_text())
    assert main(["--no-probe", "--baseline", "baseline.json", name]) == 0
