"""What is compared at an episode, and what several comparisons say together."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("warp")

from warplint.probe.runtime import judge
from warplint.probe.runtime.measure import Measured, directions, parameter_scale


def checked(*outcomes: tuple[str, float, float]) -> Measured:
    """An episode with checks of given (outcome, signal, uncertainty)."""
    measured = Measured(cast(Any, None), 1)
    for number, (outcome, signal, uncertainty) in enumerate(outcomes):
        found = judge.Judgement(outcome, signal, signal, uncertainty, 1e-3, 0.0, signal)
        measured.checks.append((f"direction {number}", found))
    return measured


def test_one_difference_decides() -> None:
    assert checked((judge.AGREES, 1.0, 0.0), (judge.DIFFERS, 0.1, 0.0)).outcome == judge.DIFFERS


def test_a_weak_direction_does_not_undo_a_strong_agreement() -> None:
    weak = ("inconclusive: noise", 0.01, 0.01)
    assert checked((judge.AGREES, 1.0, 1e-3), weak).outcome == judge.AGREES


def test_an_agreement_weaker_than_what_could_not_be_measured_is_none() -> None:
    strong = ("inconclusive: noise", 1.0, 0.5)
    assert checked((judge.AGREES, 0.1, 1e-4), strong).outcome == "inconclusive: noise"


def test_directions_cover_the_coordinates_that_autodiff_calls_zero() -> None:
    gradient = np.zeros(20)
    gradient[:5] = 1.0
    found = {d.name: d.vector for d in directions(gradient, seed=3, brief=False)}
    cut = found["coordinates with zero adjoint"]
    assert np.all(cut[:5] == 0.0)
    assert np.all(np.abs(cut[5:]) == 1.0)


def test_directions_do_not_depend_on_units() -> None:
    gradient = np.random.default_rng(0).normal(size=(4, 3))
    plain, scaled = (directions(g, 5, brief=False) for g in (gradient, 1e-6 * gradient))
    for a, b in zip(plain, scaled, strict=True):
        assert a.name == b.name
        assert np.allclose(a.vector, b.vector)


def test_a_gradient_of_zeros_or_nans_still_has_directions() -> None:
    for gradient in (np.zeros(3), np.full(3, np.nan), np.zeros(1)):
        found = directions(gradient, 1, brief=True)
        assert found
        assert all(np.all(np.isfinite(d.vector)) and np.any(d.vector) for d in found)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_scale_of_a_parameter_is_in_its_own_units(unit: float) -> None:
    assert parameter_scale(unit * np.array([1.0, -1.0, 1.0])) == pytest.approx(unit)


def test_a_parameter_of_zeros_has_a_scale() -> None:
    assert parameter_scale(np.zeros(4)) > 0.0
