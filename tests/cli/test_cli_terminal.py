"""On a terminal: colour and a progress bar; elsewhere neither."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from cli_fakes import TRAIN

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
