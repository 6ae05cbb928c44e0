"""The judge of finite differences, by examples: what it says of functions whose derivative is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numerics_lines import EPS32, SPACING, Case

from warplint.probe.runtime import judge

SMOOTH = {
    "square": (lambda x: x * x, lambda x: 2.0 * x),
    "sine": (lambda x: 2.0 + math.sin(3.0 * x), lambda x: 3.0 * math.cos(3.0 * x)),
    "exponential": (math.exp, math.exp),
    "rational": (lambda x: 1.0 / (1.0 + x * x), lambda x: -2.0 * x / (1.0 + x * x) ** 2),
    "root": (lambda x: math.sqrt(1.0 + x * x), lambda x: x / math.sqrt(1.0 + x * x)),
}
POINTS = (0.3, 0.9, -1.7)


# --- noise ---------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [1e-8, 1e-6, 1e-3])
def test_noise_is_estimated_within_a_factor_of_a_few(level: float) -> None:
    rng = np.random.default_rng(1)
    places = np.arange(7)
    for _ in range(50):
        values = 3.0 + 1e-4 * level * places**2 + level * rng.normal(size=7)
        assert level / 6.0 < judge.noise_level(list(values)) < 6.0 * level


def test_a_smooth_function_adds_little_to_the_noise() -> None:
    values = [math.sin(1.0 + 1e-3 * i) + 1e-9 * (-1) ** i for i in range(7)]
    assert judge.noise_level(values) < 1e-7


def test_noise_is_never_below_the_rounding_of_the_objective() -> None:
    case = Case(lambda x: 5.0, 1.0, ad=0.0)
    assert judge.measure_noise(case.line, 1e-6) == pytest.approx(5.0 * EPS32 / math.sqrt(12.0))


def test_noise_is_seen_where_small_displacements_vanish() -> None:
    """Masses 300 m above the ground: their places have a resolution of 3e-5 m.

    Over the first spacing nothing changes, and the noise would pass for the objective's rounding.
    """
    weights = np.float32([0.31, 0.17, 0.05, 0.23])

    def f(x: float) -> float:
        places = np.float32(300.0) + np.float32(x) * weights
        return float(np.sum((places.astype(np.float64) - 300.0) ** 2) + 1e-3)

    def smooth(x: float) -> float:
        return x * x * float(np.sum(weights.astype(np.float64) ** 2)) + 1e-3

    for x0 in np.linspace(0.08, 0.12, 15):
        case = Case(f, float(x0), ad=0.0)
        true = np.std([f(x0 + t) - smooth(x0 + t) for t in np.linspace(-1e-3, 1e-3, 200)])
        assert true / 6.0 < judge.measure_noise(case.line, SPACING * x0) < 6.0 * true


def test_noise_is_not_measured_where_a_bound_is_enough() -> None:
    case = Case(lambda x: x * x, 1.0, ad=2.0)
    noise = judge.Noise(case.line, 1e-6)
    assert judge.judge(case.line, noise).outcome == judge.AGREES
    assert not noise.measured
    assert case.count.calls == 4


# --- smooth objectives -----------------------------------------------------------------------


@pytest.mark.parametrize("x0", POINTS)
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-6])
def test_a_right_gradient_agrees(name: str, x0: float, noise: float) -> None:
    f, derivative = SMOOTH[name]
    found = Case(f, x0, derivative(x0), noise).judge()
    assert found.outcome == judge.AGREES
    assert found.fd == pytest.approx(derivative(x0), rel=0.03)


@pytest.mark.parametrize("x0", POINTS)
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("noise", [0.0, 1e-7, 1e-6])
@pytest.mark.parametrize("factor", [0.95, 1.05, 0.0, 2.0, -1.0])
def test_a_wrong_gradient_differs(name: str, x0: float, noise: float, factor: float) -> None:
    f, derivative = SMOOTH[name]
    assert Case(f, x0, factor * derivative(x0), noise).judge().outcome == judge.DIFFERS


def test_a_gradient_that_is_off_by_half_a_percent_differs() -> None:
    f, derivative = SMOOTH["sine"]
    assert Case(f, 0.9, 1.005 * derivative(0.9)).judge().outcome == judge.DIFFERS


@pytest.mark.parametrize("noise", [1e-4, 1e-3])
def test_a_five_per_cent_error_under_much_noise_is_never_agreement(noise: float) -> None:
    for x0 in np.linspace(0.2, 1.4, 25):
        f, derivative = SMOOTH["sine"]
        found = Case(f, float(x0), 0.95 * derivative(x0), noise).judge()
        assert found.outcome != judge.AGREES
        right = Case(f, float(x0), derivative(x0), noise).judge()
        assert right.outcome != judge.DIFFERS


@given(
    name=st.sampled_from(sorted(SMOOTH)),
    x0=st.sampled_from(POINTS),
    objective=st.integers(-18, 18),
    parameter=st.integers(-18, 18),
    factor=st.sampled_from([1.0, 0.95, 0.5, 0.0]),
)
@settings(max_examples=100, deadline=None)
def test_units_do_not_matter(name: str, x0: float, objective: int, parameter: int, factor: float) -> None:
    """Objective and parameter in other units (powers of two are exact): the same outcome."""
    f, derivative = SMOOTH[name]
    a, b = 2.0**objective, 2.0**parameter
    plain = Case(f, x0, factor * derivative(x0)).judge()
    scaled = Case(lambda x: a * f(x / b), b * x0, factor * a / b * derivative(x0)).judge()
    assert scaled.outcome == plain.outcome
    assert scaled.relative_error == pytest.approx(plain.relative_error)


@given(
    name=st.sampled_from(sorted(SMOOTH)),
    x0=st.sampled_from(POINTS),
    objective=st.floats(-6.0, 6.0),
    parameter=st.floats(-6.0, 6.0),
    noise=st.floats(0.0, 3e-6),
    factor=st.sampled_from([1.0, 0.95]),
)
@settings(max_examples=100, deadline=None)
def test_right_and_wrong_are_told_apart_at_every_size(
    name: str, x0: float, objective: float, parameter: float, noise: float, factor: float
) -> None:
    f, derivative = SMOOTH[name]
    a, b = 10.0**objective, 10.0**parameter
    found = Case(lambda x: a * f(x / b), b * x0, factor * a / b * derivative(x0), noise).judge()
    assert found.outcome == (judge.AGREES if factor == 1.0 else judge.DIFFERS)


@pytest.mark.parametrize("misjudged", [1e-3, 1e3])
def test_the_scale_of_the_parameter_may_be_misjudged(misjudged: float) -> None:
    """A zero parameter has no scale of its own: steps are found where the objective bends."""
    unit = 0.01 * misjudged
    f = lambda x: 1.0 + math.sin(x / unit + 0.5)  # noqa: E731
    right = math.cos(0.5) / unit
    assert Case(f, 0.0, right).judge().outcome == judge.AGREES
    assert Case(f, 0.0, 0.9 * right).judge().outcome == judge.DIFFERS


def test_near_a_minimum_curvature_is_no_kink() -> None:
    """The one-sided slopes are far apart, but only because the function bends."""
    x0 = 1.0 + 1e-3
    f = lambda x: 0.1 + (x - 1.0) ** 2  # noqa: E731
    assert Case(f, x0, 2e-3).judge().outcome == judge.AGREES
    assert Case(f, x0, 4e-3).judge().outcome == judge.DIFFERS


# --- kinks, steps and holes -------------------------------------------------------------------


@pytest.mark.parametrize("subgradient", [-1.0, -0.5, 0.0, 0.3, 1.0])
@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_a_subgradient_at_a_kink_is_never_wrong(subgradient: float, slope: float) -> None:
    found = Case(lambda x: 1.0 + abs(x - 1.0) + slope * x, 1.0, subgradient + slope).judge()
    assert found.outcome != judge.DIFFERS


def test_a_kink_is_named() -> None:
    found = Case(lambda x: 1.0 + max(x - 1.0, 0.0), 1.0, 0.0).judge()
    assert found.outcome == "inconclusive: kink, the one-sided slopes disagree"


def test_what_lies_outside_both_slopes_of_a_kink_is_wrong() -> None:
    assert Case(lambda x: 1.0 + abs(x - 1.0), 1.0, 3.0).judge().outcome == judge.DIFFERS


@given(exponent=st.floats(-7.0, 0.0), jump=st.floats(0.01, 10.0), side=st.sampled_from([-1.0, 1.0]))
@settings(max_examples=100, deadline=None)
def test_a_kink_near_the_point_is_no_difference(exponent: float, jump: float, side: float) -> None:
    place = 1.0 + side * 10.0**exponent
    found = Case(
        lambda x: 1.0 + x + jump * max(x - place, 0.0), 1.0, 1.0 + (jump if side < 0 else 0.0)
    ).judge()
    assert found.outcome != judge.DIFFERS


@given(exponent=st.floats(-3.0, 0.0), jump=st.floats(-10.0, 10.0))
@settings(max_examples=100, deadline=None)
def test_a_jump_near_the_point_is_no_difference(exponent: float, jump: float) -> None:
    """One-sided contact: a bounce that happens one time step earlier."""
    place = 1.0 + 10.0**exponent
    assert Case(lambda x: 1.0 + x + (jump if x > place else 0.0), 1.0, 1.0).judge().outcome != judge.DIFFERS


@given(seed=st.integers(0, 10**6), kinks=st.integers(1, 60), noise=st.sampled_from([0.0, 1e-7, 1e-6]))
@settings(max_examples=100, deadline=None)
def test_many_kinks_are_no_difference(seed: int, kinks: int, noise: float) -> None:
    """A network of relu units: piecewise linear with kinks everywhere."""
    rng = np.random.default_rng(seed)
    places, weights = rng.normal(size=kinks), rng.normal(size=kinks)

    def f(x: float) -> float:
        return 1.0 + float(np.sum(weights * np.maximum(x - places, 0.0)) ** 2)

    x0 = float(np.float32(rng.normal()))
    sums = float(np.sum(weights * np.maximum(x0 - places, 0.0)))
    ad = 2.0 * sums * float(np.sum(weights * (x0 > places)))
    assert Case(f, x0, ad, noise).judge().outcome != judge.DIFFERS


def test_zero_is_right_on_a_staircase() -> None:
    for width in (0.5, 1e-1, 1e-2, 1e-3):
        found = Case(lambda x, w=width: 1.0 + math.floor(x / w) * w, 1.0 + 0.4 * width, 0.0).judge()
        assert found.outcome in (judge.AGREES, "inconclusive: " + judge._STAIRCASE)


def test_a_slope_on_a_staircase_is_wrong_or_undecided() -> None:
    found = Case(lambda x: 1.0 + math.floor(x / 1e-2) * 1e-2, 1.004, 1.0).judge()
    assert found.outcome != judge.AGREES or abs(found.fd - 1.0) < 0.03


def test_the_last_digit_exceeds_the_change() -> None:
    found = Case(lambda x: 1e7 + x, 1.0, 1.0, scale=1e-2).judge()
    assert found.outcome.startswith("inconclusive: quantised")


def test_chaos_is_inconclusive() -> None:
    for x0 in np.linspace(0.5, 1.5, 40):
        ad = 1e6 * math.cos(1e6 * x0)
        f = lambda x: 2.0 + math.sin(1e6 * x)  # noqa: E731
        for single in (True, False):
            assert Case(f, float(x0), ad, single=single, scale=30.0).judge().outcome != judge.DIFFERS


def test_chaos_is_named() -> None:
    ad = 1.4e9 * math.cos(1e9 * 0.49)
    found = Case(lambda x: 2.0 + math.sin(1e9 * x * x), 0.7, ad, single=False, scale=30.0).judge()
    assert found.outcome.startswith("inconclusive: chaotic")


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_no_number_differs(wrong: float) -> None:
    found = Case(lambda x: x * x, 1.0, wrong).judge()
    assert found.outcome == judge.DIFFERS
    assert found.relative_error == math.inf


def test_a_gradient_that_is_no_number_differs_where_zero_is_right() -> None:
    assert Case(lambda x: 3.0, 1.0, math.nan).judge().outcome == judge.DIFFERS


@pytest.mark.parametrize("distance", [1e-2, 0.1, 0.5])
def test_near_the_edge_of_the_domain_smaller_steps_decide(distance: float) -> None:
    """The objective is NaN beyond the edge."""
    f = lambda x: 1.0 + math.log(x) if x > 0.0 else math.nan  # noqa: E731
    found = Case(f, distance, 1.0 / distance, scale=1.0, single=False).judge()
    assert found.outcome == judge.AGREES
    assert Case(f, distance, 0.9 / distance, scale=1.0, single=False).judge().outcome == judge.DIFFERS


def test_at_the_edge_of_the_domain_nothing_can_be_said() -> None:
    f = lambda x: 1.0 + x if x >= 1.0 else math.nan  # noqa: E731
    assert Case(f, 1.0, 1.0).judge().outcome == "inconclusive: the objective is not finite nearby"


# --- zero -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 1e-6, 1.0, 1e6])
def test_an_inert_parameter_agrees(value: float) -> None:
    found = Case(lambda x: value, 1.0, 0.0).judge()
    assert found.outcome == judge.AGREES
    assert found.fd == 0.0


def test_a_missing_gradient_is_not_inert() -> None:
    assert Case(lambda x: 1.0 + 0.01 * x, 1.0, 0.0).judge().outcome == judge.DIFFERS


def test_what_hides_below_the_noise_is_not_inert_against_a_strong_parameter() -> None:
    """With another direction a thousand times as strong as the objective, zero needs a sharper test."""
    case = Case(lambda x: 1e4, 1.0, 0.0, noise=1e-4)
    assert case.judge().outcome == judge.AGREES
    case.line.reference = 1e-3
    assert case.judge().outcome != judge.AGREES


# --- cost -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMOOTH)
def test_an_answer_takes_few_evaluations(name: str) -> None:
    f, derivative = SMOOTH[name]
    right = Case(f, 0.9, derivative(0.9), noise=1e-7)
    right.judge()
    assert right.count.calls <= 12
    wrong = Case(f, 0.9, 0.9 * derivative(0.9), noise=1e-7)
    wrong.judge()
    assert wrong.count.calls <= 24


def test_an_answer_that_cannot_be_had_is_given_up() -> None:
    case = Case(lambda x: 2.0 + math.sin(1e6 * x), 1.0, 1e3, scale=30.0)
    case.judge()
    assert case.count.calls <= 50
