"""Code that only tests run is measured through the test that reaches the finding."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS, check

pytestmark = pytest.mark.probe

DESCEND = """
def descend(start, steps):
    x = array(start)
    loss = zeros(1)
    for _ in range(steps):
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(misfit, 2, [x, 2.0], [loss])
        tape.backward(loss)
        x.assign(x.numpy() - 0.05 * x.grad.numpy())
    return loss
"""
TESTS = """
import pytest

from fit import descend


@pytest.fixture
def start():
    return [0.5, 1.0]


def test_nothing():
    assert True


class TestDescend:
    @pytest.mark.parametrize("steps", [3, 4])
    def test_falls(self, start, steps, tmp_path):
        (tmp_path / "loss.txt").write_text(str(descend(start, steps).numpy()[0]))
        assert False, "a failing test has been measured until it failed"
"""


def test_the_gradient_in_a_test_is_measured(tmp_path: Path) -> None:
    files = {
        "fit.py": KERNELS + DESCEND,
        "tests/test_fit.py": TESTS,
        # Options as a project may have them: tests shared out to other processes.
        "pytest.ini": "[pytest]\naddopts = -n 2\n",
    }
    _, report = check(tmp_path, files)
    (row,) = report["programs"]
    assert row["program"] == "tests/test_fit.py::TestDescend::test_falls"
    assert row["status"] == "wrong", row["reason"]
    (result,) = [r for r in report["results"] if r["verdict"] == "confirmed"]
    assert (result["rule"], result["location"]["file"]) == ("WL501", "fit.py")
