"""A few of the measured kernels, run: wrong ones are confirmed by their rule, right ones are cleared."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from kernel_cases import CASES

pytestmark = pytest.mark.probe

CHOSEN = ("10_idiv", "12_while_sum", "12_dyn_max", "17_k_assign_twice", "29_swap_elements_nonlinear")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The results by case: one call of the command checks all of them."""
    directory = tmp_path_factory.mktemp("measured")
    for case in CASES:
        if case.name in CHOSEN:
            (directory / f"case_{case.name}.py").write_text(case.program, encoding="utf-8")
    command = [sys.executable, "-c", "from warplint.cli.main import run; run()", "check", "."]
    done = subprocess.run(
        [*command, "--format", "json", "--show-dismissed"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=400,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CHOSEN)
def test_verdict(report, name):
    (case,) = (c for c in CASES if c.name == name)
    results = [r for r in report["results"] if r["location"]["file"] == f"case_{name}.py"]
    confirmed = [r["rule"] for r in results if r["verdict"] == "confirmed"]
    assert confirmed == ([case.wrong] if case.wrong else [])
    if case.wrong is None:
        assert "WL902" in [r["rule"] for r in results]
        assert [r["verdict"] for r in results if r["rule"] == case.hint] != ["unverified"]
