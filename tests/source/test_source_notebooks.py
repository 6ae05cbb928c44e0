"""Notebooks: what is left of the cells, and where a result is said to be."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest

from warplint.cli.main import main
from warplint.rulebook import load_rules
from warplint.source.notebooks import file_line, read_notebook

BAD = load_rules()["WL106"].bad
CALL = "    batch.assign(samples[k + 1])\n"


def notebook(*cells: str | tuple[str, str], language: str = "python", indent: int | None = 1) -> str:
    """A notebook with these cells: code, or a kind and its text."""
    pairs = [cell if isinstance(cell, tuple) else ("code", cell) for cell in cells]
    return json.dumps(
        {
            "cells": [
                {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
                for kind, text in pairs
            ],
            "metadata": {"kernelspec": {"language": language, "name": "x"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=indent,
    )


def lines(*cells: str) -> list[str]:
    return read_notebook(notebook(*cells).encode()).text.split("\n")


@pytest.mark.parametrize(
    ("cell", "python"),
    [
        ("%matplotlib inline\nx = 1", ["pass", "x = 1"]),
        ("!pip install warp-lang\nx = 1", ["pass", "x = 1"]),
        ("for i in n:\n    !echo {i}", ["for i in n:", "    pass"]),
        ("wp.launch?", ["pass"]),
        ("?wp.launch", ["pass"]),
        ("files = !ls\nx = 1", ["files = None", "x = 1"]),
        ("%%time\nx = 1", ["", "x = 1"]),
        ("%%bash\nrm -rf build", ["", ""]),
        ("\n%%html\n<b>", ["", "", ""]),
        ("x = (3\n     % y)", ["x = (3", "     % y)"]),
        ("%cd ..\nx = (3\n     % y)", ["pass", "x = (3", "     % y)"]),
        ('"""\n%d\n"""\n!ls', ['"""', "%d", '"""', "pass"]),
        ("a != b\n%who", ["a != b", "pass"]),
    ],
)
def test_what_is_no_python_becomes_a_statement_that_does_nothing(cell, python):
    assert lines(cell) == [*python, ""]
    ast.parse("\n".join(python))


@pytest.mark.parametrize("magic", ["%time ", "%timeit ", "%timeit -n 10 -r 3 ", "%prun  "])
def test_a_timed_statement_stays_in_its_column(magic):
    cell = f"{magic}tape.backward(loss)\n!ls"
    [first, *_] = lines(cell)
    assert first.index("tape") == cell.index("tape")
    assert isinstance(ast.parse(first).body[0], ast.If)


def test_lines_are_led_back_to_their_cells():
    text = notebook("a\nb", ("markdown", "# Title\nlong"), "c\nd", "")
    found = read_notebook(text.encode())
    assert found.text == "a\nb\nc\nd\n\n"
    assert [found.cell_line(line) for line in (1, 2, 3, 4, 5)] == [(1, 1), (1, 2), (3, 1), (3, 2), (4, 1)]
    raw = text.split("\n")
    assert '"d"' in raw[file_line(text.encode(), 3, 2) - 1]
    assert '"b"' in raw[file_line(text.encode(), 1, 2) - 1]
    assert file_line(notebook("a\nb", indent=None).encode(), 1, 2) == 1  # all on one line


def test_other_languages_are_nothing_to_check():
    assert read_notebook(notebook("x <- 1", language="R").encode()).text == ""


def check(directory: Path, capsys, *arguments: str) -> tuple[int, str, str]:
    os.chdir(directory)
    status = main(["check", "--no-probe", "--no-cache", "--strict", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    head, loop = BAD.split("rng = ")
    cells = [("markdown", "# Fit a wave"), "%matplotlib inline\n" + head, "rng = " + loop]
    (tmp_path / "fit.ipynb").write_text(notebook(*cells), encoding="utf-8")
    return tmp_path


def test_a_finding_in_a_notebook_is_named_by_cell_and_line(project, capsys):
    loop = ("rng = " + BAD.split("rng = ")[1]).splitlines(keepends=True)
    line = loop.index(CALL) + 1
    status, out, err = check(project, capsys)
    assert status == 1 and not err
    assert out.startswith(f"fit.ipynb:cell 3:{line}:5 WL106 write-before-backward  unverified\n")
    assert f"(cell 3, line {line - 1}) still" in " ".join(out.split())
    assert f"  {line} |     batch.assign(samples[k + 1])\n" in out and "--> fit.ipynb:cell 3" in out

    _, out, _ = check(project, capsys, "--format", "json")
    [result] = json.loads(out)["results"]
    place = result["location"]
    assert (place["file"], place["cell"], place["line"], place["column"]) == ("fit.ipynb", 3, line, 5)

    # Readers that know no cells are led to the line of the file.
    _, out, _ = check(project, capsys, "--format", "github")
    raw = int(out.split("line=")[1].split(",")[0])
    assert "batch.assign(samples[k + 1])" in (project / "fit.ipynb").read_text().split("\n")[raw - 1]
    assert f"cell 3, line {line}: " in out
    _, out, _ = check(project, capsys, "--format", "sarif")
    place = json.loads(out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"]["startLine"] == raw and place["artifactLocation"]["uri"] == "fit.ipynb"


def test_comments_in_cells_suppress_and_a_baseline_knows_cells(project, capsys):
    check(project, capsys, "--write-baseline", "known.json")
    assert check(project, capsys, "--baseline", "known.json")[0] == 0
    text = (project / "fit.ipynb").read_text()
    text = text.replace("samples[k + 1])", "samples[k + 1])  # warplint: ignore[WL106]")
    (project / "fit.ipynb").write_text(text)
    status, out, _ = check(project, capsys)
    assert status == 0 and "WL106" not in out


def test_what_cannot_be_read_is_said_with_its_cell(project, capsys):
    (project / "fit.ipynb").write_text(notebook("import warp", ("markdown", ""), "x = 1\nx = ("))
    status, out, _ = check(project, capsys)
    assert status == 1 and out.startswith("fit.ipynb:cell 3:2:5 WL002 unreadable-file")
    assert "(cell 3, line 2)" in out
    (project / "fit.ipynb").write_text("{warp")
    assert "not a Jupyter notebook" in check(project, capsys)[1]


def test_a_notebook_is_no_program(project, capsys):
    assert main(["check", "--list-programs"]) == 0
    assert capsys.readouterr().out == "no programs found\n"
    assert main(["check", "--entry", "fit.ipynb"]) == 2
    assert "notebooks are read, not run" in capsys.readouterr().err
