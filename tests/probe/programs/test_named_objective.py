"""`objective` of the probe's configuration: finite differences of the number that the user names."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS

from warplint.model import Program
from warplint.probe import ProbeReport, ProbeSettings, probe

pytestmark = pytest.mark.probe

# Differentiated: the misfit alone. Shown: the misfit and a penalty that never was on the tape.
PENALIZED = """
x = array([0.5, 1.0])
for it in range(3):
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [x, 2.0], [loss])
    tape.backward(loss)
    total = float(loss.numpy()[0] + 3.0 * np.sum(x.numpy() ** 2))
    steps = 0.5 * it
    print(f"step {it}: misfit {loss.numpy()[0]:.6f}")
    x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""


def probed(tmp_path: Path, objective: str | None) -> ProbeReport:
    (tmp_path / "fit.py").write_text(KERNELS + PENALIZED)
    settings = ProbeSettings(root=tmp_path, evidence=False, objective=objective)
    return probe([Program("fit.py")], [], settings)


def test_a_printed_number_that_is_what_is_differentiated(tmp_path: Path) -> None:
    report = probed(tmp_path, "misfit")
    assert report.programs[0].status.value == "verified", report.programs[0].reason
    evidence = report.results[0].evidence
    assert evidence is not None
    assert evidence.objective.startswith("misfit (fit.py:")


def test_a_number_with_more_in_it_than_the_gradient(tmp_path: Path) -> None:
    report = probed(tmp_path, "total")
    assert report.programs[0].status.value == "wrong"
    assert [r.rule for r in report.results] == ["WL901"]
    evidence = report.results[0].evidence
    assert evidence is not None
    assert evidence.objective.startswith("total (fit.py:")


def test_a_name_that_no_number_has(tmp_path: Path) -> None:
    row = probed(tmp_path, "energy").programs[0]
    assert row.status.value == "inconclusive"
    assert row.reason is not None and "probe.objective: no number named `energy`" in row.reason


def test_a_number_that_does_not_depend_on_the_parameter(tmp_path: Path) -> None:
    row = probed(tmp_path, "steps").programs[0]
    assert row.status.value == "inconclusive"
    assert row.reason is not None and "`steps` does not change with the parameter" in row.reason
