"""Fixes on programs that are really run."""

from __future__ import annotations

import json

import pytest

from warplint.cli.main import main
from warplint.fixes.project import Candidate
from warplint.model import Edit, Location

pytestmark = pytest.mark.probe

TWO_BUGS = '''"""Steer a pendulum: the pushes do not reach the loss, and the states take turns."""

import numpy as np
import warp as wp

STEPS = 6


@wp.kernel
def pushes(level: wp.array(dtype=float), push: wp.array(dtype=float)):
    t = wp.tid()
    push[t] = wp.tanh(level[t])


@wp.kernel
def swing(a: wp.array(dtype=float), push: wp.array(dtype=float), t: int, b: wp.array(dtype=float)):
    b[0] = a[0] + 0.3 * (push[t] - wp.sin(a[0]) * a[0])


@wp.kernel
def miss(a: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = (a[0] - 0.5) * (a[0] - 0.5)


level = wp.array(np.linspace(0.5, 1.0, STEPS), dtype=float, requires_grad=True)
push = wp.zeros(STEPS, dtype=float)
a, b = wp.zeros(1, dtype=float, requires_grad=True), wp.zeros(1, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
for it in range(4):
    a.fill_(1.0)
    with wp.Tape() as tape:
        wp.launch(pushes, STEPS, [level], [push])
        for t in range(STEPS):
            wp.launch(swing, 1, [a, push, t], [b])
            a, b = b, a
        wp.launch(miss, 1, [a], [loss])
    tape.backward(loss)
    level.assign(level.numpy() - 0.1 * level.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])
'''
ONE_BUG = TWO_BUGS.replace(
    "push = wp.zeros(STEPS, dtype=float)", "push = wp.zeros(STEPS, float, requires_grad=True)"
)


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Check a program in this process: the status, the report and the program afterwards."""

    def call(text: str, *arguments: str):
        (tmp_path / "steer.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        status = main(["check", "--format", "json", *arguments])
        return status, json.loads(capsys.readouterr().out), (tmp_path / "steer.py").read_text()

    return call


def test_a_bug_that_hides_another_is_fixed_together_with_it(check):
    status, report, fixed = check(TWO_BUGS, "--fix")
    assert status == 0
    assert [row["status"] for row in report["programs"]] == ["verified"]
    assert {(r["rule"], r["fix"]["applicability"]) for r in report["fixed"]} == {
        ("WL201", "verified"),
        ("WL103", "verified"),
    }
    assert fixed == TWO_BUGS.replace(
        "push = wp.zeros(STEPS, dtype=float)", "push = wp.zeros(STEPS, dtype=float, requires_grad=True)"
    ).replace("a, b = b, a", "a, b = b, wp.zeros_like(a)")


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("    tape.backward(loss)", "    tape.backward(loss)  # now it is right"),
        ("STEPS = 6", "STEPS = 1"),
    ],
    ids=["mends-nothing", "computes-something-else"],
)
def test_a_planted_fix_that_is_wrong_is_never_applied(check, monkeypatch, line, wrong):
    lines = ONE_BUG.splitlines()
    number = lines.index(line) + 1
    edit = Edit(Location("steer.py", number, 1, number, len(line) + 1), wrong)
    planted = [Candidate("a wrong fix", (edit,))]
    monkeypatch.setattr("warplint.fixes.proof.candidates", lambda result, project: planted)
    status, report, after = check(ONE_BUG, "--fix")
    assert status == 1
    assert after == ONE_BUG
    assert report["fixed"] == []
    assert [r["rule"] for r in report["results"] if r["verdict"] == "confirmed"] == ["WL103"]
