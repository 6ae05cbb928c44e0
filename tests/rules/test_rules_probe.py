"""The promise of every page and fixture: the bug is confirmed, its twin is cleared.

Each test runs `warplint check` on programs as a user would, which takes seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from warplint.rulebook import load_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.probe

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
EXPECTED = tomllib.loads((FIXTURES / "expected.toml").read_text(encoding="utf-8"))["fixture"]
WITH_EXAMPLES = [rule for rule in load_rules().values() if rule.bad]
CURRENT = [rule for rule in WITH_EXAMPLES if not rule.versions.startswith("<")]
MENDED = [rule for rule in WITH_EXAMPLES if rule not in CURRENT]
"""Rules about versions of Warp before the installed one: ``tests/versions`` proves them."""
FIRST = list({fixture["rule"]: fixture for fixture in reversed(EXPECTED)}.values())[::-1]
PROBED = EXPECTED if os.environ.get("WARPLINT_TEST_ALL_FIXTURES") else FIRST
"""One fixture a rule, so that the tests stay short; the variable asks for all."""
CURRENT_FIXTURES = [f for f in PROBED if f["rule"] not in {rule.id for rule in MENDED}]
MENDED_FIXTURES = [f for f in PROBED if f not in CURRENT_FIXTURES]


def check(directory: Path, *arguments: str) -> tuple[int, dict]:
    """Run the command; its status and its JSON report."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from warplint.cli.main import run; run()",
            *("check", ".", "--format", "json", "--show-dismissed", *arguments),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def copy(fixture: str, to: Path) -> Path:
    """A fixture outside the tree, which the evidence that is left behind must not reach."""
    return Path(shutil.copytree(FIXTURES / fixture, to / fixture))


def confirmed(report: dict) -> list[dict]:
    return [result for result in report["results"] if result["verdict"] == "confirmed"]


def notes(report: dict) -> list[dict]:
    """What is worth saying beside the gradient being right."""
    return [r for r in report["results"] if r["verdict"] == "note" and r["rule"] != "WL902"]


def assert_right(status: int, report: dict) -> None:
    """The program was measured, its gradient is right, and nothing is said to be wrong."""
    assert confirmed(report) == []
    assert status == 0
    assert [row["status"] for row in report["programs"]] == ["verified"]
    assert [r["rule"] for r in report["results"] if r["verdict"] == "note"] == ["WL902"]


@pytest.mark.parametrize("rule", MENDED, ids=lambda rule: rule.id)
def test_bad_is_right_where_warp_has_mended_it(rule, tmp_path):
    (tmp_path / "program.py").write_text(rule.bad, encoding="utf-8")
    assert_right(*check(tmp_path))


@pytest.mark.parametrize("rule", CURRENT, ids=lambda rule: rule.id)
def test_bad_is_confirmed(rule, tmp_path):
    (tmp_path / "program.py").write_text(rule.bad, encoding="utf-8")
    status, report = check(tmp_path)
    if rule.extra.get("verdict") == "note":
        assert (status, confirmed(report)) == (0, [])
        assert [r["rule"] for r in notes(report)] == [rule.id]
        return
    assert status == 1
    assert [result["rule"] for result in confirmed(report)] == [rule.id]
    evidence = confirmed(report)[0]["evidence"]
    assert evidence["counterfactual"]["relative_error"] < 0.01
    if rule.signature == "zero":
        assert evidence["signature"] == "zero"


@pytest.mark.parametrize("rule", WITH_EXAMPLES, ids=lambda rule: rule.id)
def test_good_is_cleared(rule, tmp_path):
    (tmp_path / "program.py").write_text(rule.good, encoding="utf-8")
    assert_right(*check(tmp_path))


@pytest.mark.parametrize("fixture", MENDED_FIXTURES, ids=lambda fixture: fixture["directory"])
def test_fixture_is_right_where_warp_has_mended_it(fixture, tmp_path):
    assert_right(*check(copy(fixture["directory"], tmp_path)))


@pytest.mark.parametrize("fixture", CURRENT_FIXTURES, ids=lambda fixture: fixture["directory"])
def test_fixture_is_confirmed(fixture, tmp_path):
    status, report = check(copy(fixture["directory"], tmp_path))
    if fixture.get("verdict") == "note":
        assert confirmed(report) == []
        (found,) = notes(report)
    else:
        assert status == 1
        (found,) = confirmed(report)
    assert found["rule"] == fixture["rule"]
    assert found["location"]["file"] == fixture["file"]
    assert found["location"]["line"] in fixture["lines"]


@pytest.mark.parametrize("fixture", PROBED, ids=lambda fixture: fixture["twin"])
def test_twin_is_cleared(fixture, tmp_path):
    assert_right(*check(copy(fixture["twin"], tmp_path)))


HIDDEN = """
import numpy as np
import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def clamp(a: wp.array(dtype=float), c: float):
    i = wp.tid()
    if a[i] > c:
        a[i] = c


@wp.kernel
def total(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 0.2) * (x[i] - 0.2))


def hidden(name):
    return eval(name, globals())


p = wp.array([0.7, 0.9, 1.6], dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
for iteration in range(4):
    loss.zero_()
    y, z = wp.zeros_like(p), wp.zeros_like(p)
    with wp.Tape() as tape:
        wp.launch(square, 3, [p], [y])
        wp.launch(square, 3, [y], [z])
        {on_tape}
        wp.launch(total, 3, [z], [loss])
        {after_loss}
    {before_backward}
    tape.backward(loss)
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    tape.zero()
"""

UNSEEN_BY_THE_STATIC_PASS = {
    "WL102": {"on_tape": "hidden('wp.copy')(y, wp.full(3, 5.0, dtype=float))"},
    "WL106": {"before_backward": "hidden('y.numpy()')[:] *= 2.0"},
    "WL107": {"after_loss": "hidden('wp.launch')(square, 3, [p], [z])  # p*p is not what z was"},
    "WL108": {"on_tape": "hidden('wp.launch')(clamp, 3, [z, 1.0])"},
}


@pytest.mark.parametrize("rule", UNSEEN_BY_THE_STATIC_PASS)
def test_the_run_alone_names_the_rule(rule, tmp_path):
    lines = {"on_tape": "pass", "after_loss": "pass", "before_backward": "pass"}
    text = HIDDEN.format(**{**lines, **UNSEEN_BY_THE_STATIC_PASS[rule]})
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    _, report = check(tmp_path)
    (found,) = confirmed(report)
    assert found["rule"] == rule
    assert found["help"]
    line = text.splitlines()[found["location"]["line"] - 1]
    # Nothing sees a write through a view of the memory: it is noticed when backward begins.
    assert ("tape.backward" if rule == "WL106" else "hidden(") in line


@pytest.mark.parametrize("rule", ["WL204", "WL207"])
def test_evidence_shows_the_numbers_with_the_cause_taken_away(rule, tmp_path):
    """Where the cause is taken away by measuring what it hides, the script measures it again."""
    (tmp_path / "program.py").write_text(load_rules()[rule].bad, encoding="utf-8")
    _, report = check(tmp_path)
    harness = confirmed(report)[0]["evidence"]["harness"]
    done = subprocess.run(
        [sys.executable, harness], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    before, after = done.stdout.split("with the cause taken away:")
    errors = [
        [float(line.split()[-1].rstrip("%")) for line in part.splitlines()[-2:]] for part in (before, after)
    ]
    assert max(errors[0]) > 2.0
    assert max(errors[1]) < 1.0
