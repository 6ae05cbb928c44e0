"""Every command that a page shows is run, and prints what the page says it prints.

`pytest tests/docs --update-golden` writes the outputs anew; read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from docs_pages import ELIDED, Block, Command, blocks, commands, gist, pages, same

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PAGES = pages(REPOSITORY)
WITH_COMMANDS = [
    page
    for page in PAGES
    if any(b.language == "console" and b.mark is None for b in blocks((REPOSITORY / page).read_text("utf-8")))
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the part of the repository that pages speak of."""
    directory = tmp_path_factory.mktemp("docs") / "warplint"
    shutil.copytree(REPOSITORY / "fixtures", directory / "fixtures")
    return directory


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One in which `warplint` and `python` are those that run the tests, and terminals are plain."""
    programs = tmp_path_factory.mktemp("bin")
    for name, arguments in {
        "warplint": "-c 'from warplint.cli.main import run; run()'",
        "python": "",
    }.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (programs / name).chmod(0o755)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}


class Reader:
    """Follows a page from top to bottom."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self.directory = directory
        self.environment = environment
        self.note = directory.parent / "where"

    def type(self, command: Command) -> str:
        """Run a command where the one before has left us; what it printed."""
        done = subprocess.run(
            ["bash", "-c", f'{command.text}\nstatus=$?; pwd >"$0"; exit $status', str(self.note)],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        # A linter that finds what the page says it finds ends with 1.
        expected = (0, 1) if command.text.startswith("warplint") else (0,)
        assert done.returncode in expected, f"`{command.text}` ended with {done.returncode}:\n{done.stderr}"
        self.directory = Path(self.note.read_text().strip())
        return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)  # gradcheck colours files, too

    def write(self, block: Block) -> None:
        (self.directory / block.about).write_text(block.body, encoding="utf-8")


@pytest.mark.probe
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_a_page_is_followed(page, request, checkout, environment):
    path = REPOSITORY / page
    text = path.read_text(encoding="utf-8")
    reader = Reader(checkout, environment)
    news: list[tuple[Command, str]] = []
    wrong: list[str] = []
    for block in blocks(text):
        if block.mark == "file":
            reader.write(block)
        elif block.language == "console" and block.mark is None:
            for command in commands(block):
                printed = reader.type(command)
                if command.tells and not same(command.shown, printed):
                    wrong.append(
                        f"{page}:{command.line}: `{command.text}` printed\n{printed}"
                        f"\nas words: {gist(printed)}\non the page: {gist(command.shown)}"
                    )
                    news.append((command, printed))
    if request.config.getoption("--update-golden") and wrong:
        for command, printed in reversed(news):
            assert ELIDED not in command.shown, f"{page}:{command.line}: shortened by hand, update it by hand"
            text = text[: command.start] + printed + text[command.end :]
        path.write_text(text, encoding="utf-8")
        return
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES)
def test_a_command_that_is_not_run_says_why(page):
    for block in blocks((REPOSITORY / page).read_text("utf-8")):
        assert block.language not in ("sh", "bash", "shell"), f"{page}:{block.line}: use ```console"
        if block.mark == "not run":
            assert len(block.about.split()) > 2, f"{page}:{block.line}: no reason"


def test_a_command_may_go_on_in_the_next_line():
    (block,) = blocks("```console\n$ echo one \\\n    two\none two\n$ echo three\nthree\n```\n")
    assert [(c.text, c.shown) for c in commands(block)] == [
        ("echo one \\\n    two", "one two\n"),
        ("echo three", "three\n"),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "alike"),
    [
        ("error 0.57 in train.py:12\n", "error 0.61 in train.py:12\n", True),
        ("error 0.57 in train.py:12\n", "error 0.57 in train.py:13\n", False),
        ("1 confirmed\n", "2 confirmed\n", False),
        ("first\n[…]\nlast\n", "first\nmore\nlast\n", True),
        ("first\n[…]\nlast\n", "first\nmore\n", False),
        ("first\n[…]\nmiddle\n[…]\nlast\n", "first\nlast\n", False),
    ],
)
def test_what_counts_as_the_same(shown, printed, alike):
    assert same(shown, printed) is alike
