"""`parameters` and `env` of the probe's configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from probe_programs import KERNELS

from warplint.model import Program
from warplint.probe import ProbeSettings, probe

pytestmark = pytest.mark.probe

TWO = """
import os
first = array([0.5, 1.0])
second = array([1.5, 0.2])
for it in range(2):
    loss = zeros(1)
    with wp.Tape() as tape:
        wp.launch(misfit, 2, [first, 2.0], [loss])
        wp.launch(misfit, 2, [second, float(os.environ["TARGET"])], [loss])
    tape.backward(loss)
    for x in (first, second):
        x.assign(x.numpy() - 0.05 * x.grad.numpy())
    tape.zero()
"""


def row(tmp_path: Path, *parameters: str):
    (tmp_path / "fit.py").write_text(KERNELS + TWO)
    settings = ProbeSettings(root=tmp_path, evidence=False, env=(("TARGET", "1.0"),), parameters=parameters)
    return probe([Program("fit.py")], [], settings).programs[0]


def test_only_the_named_parameters_are_measured(tmp_path: Path) -> None:
    found = row(tmp_path, "second")
    assert found.status.value == "verified"
    assert [p.split(" ")[0] for p in found.parameters] == ["second"]


def test_a_name_that_no_parameter_has_is_told_with_those_there_are(tmp_path: Path) -> None:
    found = row(tmp_path, "thrid")
    assert found.status.value == "blocked"
    assert found.reason == "probe.parameters: the program has no such parameter; it has first, second"
