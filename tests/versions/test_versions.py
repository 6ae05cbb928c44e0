"""One small suite under several versions of Warp: the verdicts are the same where Warp behaves the same.

``WARPLINT_TEST_PYTHONS`` names the interpreters, separated as in ``PATH``; each has Warp and numpy
and nothing of warplint. Without it nothing here runs. ``WARPLINT_TEST_VERSIONS=short`` leaves some
rules that are the same everywhere to the whole suite.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from warplint.rulebook import load_rules

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYTHONS = [p for p in os.environ.get("WARPLINT_TEST_PYTHONS", "").split(os.pathsep) if p]
pytestmark = [
    pytest.mark.probe,
    pytest.mark.skipif(not PYTHONS, reason="WARPLINT_TEST_PYTHONS names no interpreters"),
]

RULES = load_rules()
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
EXPECTED = tomllib.loads((FIXTURES / "expected.toml").read_text(encoding="utf-8"))["fixture"]
BOUND_FIXTURES = [f for f in EXPECTED if RULES[f["rule"]].versions.startswith("<")]
SHORT = ("WL103", "WL109", "WL201", "WL302", "WL401")
SUITE = (
    "WL101",
    "WL102",
    "WL103",
    "WL105",
    "WL106",
    "WL108",
    "WL109",
    "WL201",
    "WL202",
    "WL203",
    "WL204",
    "WL301",
    "WL302",
    "WL303",
    "WL304",
    "WL305",
    "WL401",
    "WL402",
    "WL403",
)
if os.environ.get("WARPLINT_TEST_VERSIONS") == "short":
    SUITE = SHORT

TWO_READERS = """
import numpy as np
import warp as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def distance(x: wp.array(dtype=float), y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 0.3) * (x[i] - 0.3) + y[i] * y[i])


@wp.kernel
def pick(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    far = x[i] * x[i]
    near = x[i] if i % 2 == 0 else x[2 - i]
    wp.atomic_add(loss, 0, far * far + near)


p = wp.array([0.7, 0.9, 1.6], dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
for iteration in range(3):
    loss.zero_()
    y, z = wp.zeros_like(p), wp.zeros_like(p)
    with wp.Tape() as tape:
        {forward}
    tape.backward(loss)
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    tape.zero()
"""
BOUND = {
    # A copy is not the last reader of its source: its adjoint overwrote what others had contributed.
    "a copied source read again": (
        "wp.launch(square, 3, [p], [y]); wp.copy(z, y); wp.launch(distance, 3, [z, y], [loss])",
        (1, 17),
    ),
    # A ternary that picks an array element: no adjoint passed through it.
    "an element picked by a ternary": ("wp.launch(pick, 3, [p], [loss])", (1, 17)),
}
"""What is wrong before a version and right from it on, as measured for every version."""


@cache
def warp_version(python: str) -> tuple[int, ...]:
    code = "import importlib.metadata as m; print(m.version('warp-lang'))"
    text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    return tuple(int(part) for part in text.strip().split(".")[:2])


def check(directory: Path, python: str, program: str | None = None) -> dict:
    if program is not None:
        (directory / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [
            sys.executable,
            *("-c", "from warplint.cli.main import run; run()", "check", "."),
            *("--format", "json", "--no-cache", "--python", python),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def applies(rule: str, python: str) -> bool:
    """Whether a rule is about the Warp of an interpreter."""
    bound = RULES[rule].versions
    if not bound.startswith("<"):
        return True
    return warp_version(python) < tuple(map(int, bound[1:].split(".")))


def confirmed(report: dict) -> list[str]:
    return [r["rule"] for r in report["results"] if r["verdict"] == "confirmed"]


@pytest.fixture(params=PYTHONS or ["none"], ids=lambda python: Path(python).parent.parent.name)
def python(request) -> str:
    return request.param


@pytest.mark.parametrize("rule", SUITE)
def test_bad_is_confirmed(rule: str, python: str, tmp_path: Path) -> None:
    report = check(tmp_path, python, RULES[rule].bad)
    assert tuple(map(int, report["programs"][0]["warp"].split(".")[:2])) == warp_version(python)
    expected = {rule} if applies(rule, python) else set()
    also = {"WL109"} if warp_version(python) < (1, 17) else set()  # a copy that is wrong in two ways
    assert expected <= set(confirmed(report)) <= expected | also


@pytest.mark.parametrize("rule", SUITE)
def test_good_is_cleared(rule: str, python: str, tmp_path: Path) -> None:
    report = check(tmp_path, python, RULES[rule].good)
    assert [row["status"] for row in report["programs"]] == ["verified"]
    assert confirmed(report) == []


@pytest.mark.parametrize("what", BOUND)
def test_what_a_version_of_warp_mended(what: str, python: str, tmp_path: Path) -> None:
    forward, since = BOUND[what]
    report = check(tmp_path, python, TWO_READERS.format(forward=forward))
    wrong = warp_version(python) < since
    assert [row["status"] for row in report["programs"]] == ["wrong" if wrong else "verified"]
    assert len(confirmed(report)) == int(wrong)


@pytest.mark.parametrize("fixture", BOUND_FIXTURES, ids=lambda fixture: fixture["directory"])
def test_a_fixture_of_older_versions(fixture: dict, python: str, tmp_path: Path) -> None:
    bug, twin = (shutil.copytree(FIXTURES / fixture[k], tmp_path / k) for k in ("directory", "twin"))
    assert confirmed(check(bug, python)) == [fixture["rule"]] * applies(fixture["rule"], python)
    assert confirmed(check(twin, python)) == []


LIBRARY = """
import warp as wp


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * x * adj_ret


@wp.kernel
def product(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    p = float(1.0)
    for k in range(n):
        p = p * x[i + k]
    y[i] = p
"""


def test_a_library_is_tried_on_made_up_arguments(python: str, tmp_path: Path) -> None:
    results = check(tmp_path, python, LIBRARY)["results"]
    assert {(r["rule"], r["verdict"]) for r in results} == {("WL402", "latent"), ("WL303", "latent")}
