"""`warplint graph`: readable pictures, and clear lines where there is none."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from warplint.cli.main import main

GOLDEN = Path(__file__).parent / "golden"
PROGRAM = """\
import numpy as np
import warp as wp


@wp.kernel
def step(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + k[0] * x[i] * x[i]


@wp.kernel
def total(x: wp.array(dtype=float), mask: wp.array(dtype=int), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * float(mask[i]))


class Rollout:
    def __init__(self, steps):
        self.k = wp.array([0.5], dtype=float, requires_grad=True)
        self.states = [wp.zeros(3, dtype=float, requires_grad=True) for _ in range(2)]
        self.mask = wp.ones(3, dtype=int)
        self.start = wp.array(np.ones(3), dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.steps = steps

    def forward(self):
        wp.copy(self.states[0], self.start)
        for s in range(self.steps):
            wp.launch(step, 3, [self.states[s % 2], self.k], [self.states[(s + 1) % 2]])
        wp.launch(total, 2, [self.states[self.steps % 2][0:2], self.mask], [self.loss])


if __name__ == "__main__":
    rollout = Rollout(6)
    for _ in range(3):
        tape = wp.Tape()
        with tape:
            rollout.forward()
        tape.backward(rollout.loss)
        tape.zero()
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "rollout.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return "rollout.py"


@pytest.fixture
def drawn(program, capsys):
    def drawn(*options: str) -> str:
        assert main(["graph", program, *options]) == 0
        return capsys.readouterr().out

    return drawn


@pytest.fixture
def refused(program, capsys):
    """The one line that is said instead."""

    def refused(*arguments: str) -> str:
        assert main(["graph", *arguments]) == 2
        run = capsys.readouterr()
        assert run.out == ""
        (line,) = run.err.splitlines()
        return line

    return refused


@pytest.mark.parametrize("format", ["dot", "mermaid", "json"])
def test_pictures(format, drawn, golden):
    golden(GOLDEN / f"graph.{format}", drawn("--format", format, "--turns", "2"))


def test_labels_are_the_names_and_lines_of_the_program(drawn):
    text = drawn()
    line = 1 + PROGRAM[: PROGRAM.index("wp.launch(step")].count("\n")
    assert f"step\\nrollout.py:{line}\\nturn 1.2" in text
    for name in ("rollout.k", "self.states[0]", "self.states[1]", "self.states[self.steps % 2][0:2]"):
        assert f'"{name}\\n' in text or f'"{name}"' in text, name
    assert "integers" in text
    assert "not recorded" in text


def test_what_is_overwritten_too_early_is_red(drawn):
    (scope,) = json.loads(drawn("--format", "json"))["scopes"]
    names = {node["id"]: node["name"] for node in scope["nodes"]}
    found = [e for e in scope["edges"] if e["kind"] == "overwrites"]
    assert {(names[e["source"]], names[e["target"]]) for e in found} == {
        ("step", "self.states[0]"),
        ("step", "self.states[1]"),
    }


def test_later_turns_are_folded(drawn):
    few, all_turns = (json.loads(drawn("--format", "json", "--turns", n)) for n in ("1", "9"))
    kinds = [[n["kind"] for n in d["scopes"][0]["nodes"]] for d in (few, all_turns)]
    assert [k.count("more") for k in kinds] == [1, 0]
    assert [k.count("operation") for k in kinds] == [3, 8]


def test_edges_join_nodes_that_are_there(drawn):
    for scope in json.loads(drawn("--format", "json"))["scopes"]:
        known = {node["id"] for node in scope["nodes"]}
        assert all({edge["source"], edge["target"]} <= known for edge in scope["edges"])


def test_into_a_file(drawn, tmp_path):
    assert drawn("--format", "mermaid", "--output-file", "out.md") == ""
    assert (tmp_path / "out.md").read_text().startswith("flowchart LR\n")


def test_one_scope_of_several(drawn, refused, program):
    Path(program).write_text(PROGRAM + "    with wp.Tape() as other:\n        rollout.forward()\n")
    assert drawn().count("subgraph") == 2
    assert drawn("--scope", "2").count("subgraph") == 1
    assert refused(program, "--scope", "3").endswith("has 2 tape scopes")


def test_svg_without_graphviz(refused, program, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert refused(program, "--format", "svg").endswith(
        "--format svg needs Graphviz, whose `dot` is not on the PATH; --format dot writes its input"
    )


@pytest.mark.parametrize(("script", "expected"), [("echo '<svg/>'", 0), ("echo bad graph >&2; exit 3", 2)])
def test_svg_through_graphviz(script, expected, program, tmp_path, monkeypatch, capsys):
    dot = tmp_path / "bin" / "dot"
    dot.parent.mkdir()
    dot.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    dot.chmod(dot.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{dot.parent}{os.pathsep}{os.environ['PATH']}")
    assert main(["graph", program, "--format", "svg"]) == expected
    run = capsys.readouterr()
    assert "<svg/>" in run.out if expected == 0 else "Graphviz failed: bad graph" in run.err


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "nothing.py",
            "import warp as wp\n",
            "nothing.py: no tape scope was reached (checked code is read, not run)",
        ),
        (
            "broken.py",
            "import warp as wp\nx = (\n",
            "broken.py cannot be read as Python: syntax error (line 2)",
        ),
        ("latin.py", None, "latin.py cannot be read as Python: not UTF-8 (line 1)"),
        ("missing.py", "", "no such program: missing.py"),
        (".", "", ". is a directory; name a program, which is a Python file"),
    ],
)
def test_nothing_to_draw(name, text, expected, refused, tmp_path):
    if text is None:
        (tmp_path / name).write_bytes(b"# caf\xe9\n")
    elif text:
        (tmp_path / name).write_text(text)
    assert expected in refused(name)
