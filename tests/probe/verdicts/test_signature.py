"""What the numbers alone say."""

from __future__ import annotations

import pytest
from verdict_facts import check, episode

from warplint.model import Counterfactual
from warplint.probe.signature import SUSPECTS, signature, suspects
from warplint.rulebook import load_rules


def wrong(iteration: int, *pairs: tuple[float, float], **changes: object) -> dict[str, object]:
    checks = [check(ad, fd, "differs", f"direction {i}") for i, (ad, fd) in enumerate(pairs)]
    return episode(iteration, *checks, **changes)


AGREES = episode(1, check(1.0, 1.0, "agrees"))


@pytest.mark.parametrize(
    ("episodes", "expected"),
    [
        ([AGREES], "correct"),
        ([wrong(1, (0.0, 1.0), (0.0, 0.5), zero=True)], "zero"),
        ([wrong(1, (float("nan"), 1.0), finite=False)], "nan-inf"),
        ([wrong(1, (0.0, 1.0), stale_view=True)], "stale"),
        ([wrong(1, (0.0, 1.0), zero=True), wrong(2, (1.0, 0.9), (0.4, 0.5), lags=True)], "stale"),
        ([wrong(1, (0.4, 1.0), (0.3, 0.5), per_window=True)], "per-window-only"),
        ([wrong(1, (2.0, 1.0), (1.0, 0.5)), wrong(2, (3.0, 1.5), (0.4, 0.2))], "exact-factor(2)"),
        ([wrong(1, (1.995, 1.0), (0.9935, 0.5))], "subtly-wrong"),
        ([AGREES, wrong(2, (2.0, 1.0), (1.0, 0.5))], "grows-with-iterations"),
        ([wrong(1, (2.0, 1.0), (1.0, 0.5)), wrong(2, (3.0, 1.0), (1.5, 0.5))], "grows-with-iterations"),
        ([wrong(1, (1.1, 1.0), (0.7, 0.5))], "subtly-wrong"),
        (
            [episode(1, check(1.0, 1.0, "agrees"), check(0.0, 0.7, "differs", "random signs 1"))],
            "sparse",
        ),
    ],
)
def test_signature(episodes: list[dict[str, object]], expected: str) -> None:
    assert signature(episodes) == expected


def test_rules_of_static_findings_come_first_and_the_table_orders_the_rest():
    assert suspects("zero", [])[:3] == ("WL504", "WL203", "WL201")
    assert suspects("zero", ["WL301", "WL203", "WL201"])[:4] == ("WL203", "WL201", "WL301", "WL504")
    assert suspects("exact-factor(2)", ["WL505"])[:2] == ("WL505", "WL507")


def test_the_table_names_kinds_and_rules_that_exist():
    kinds = {kind.value for kind in Counterfactual}
    for rows in SUSPECTS.values():
        assert {kind for kind, _ in rows} <= kinds
        assert {rule for _, rules in rows for rule in rules} <= set(load_rules())


@pytest.mark.parametrize("rule", [r for r in load_rules().values() if r.signature], ids=lambda rule: rule.id)
def test_a_signature_points_at_the_rules_whose_pages_name_it(rule):
    if rule.signature != "correct":  # what is right points at nothing
        assert rule.id in suspects(rule.signature, [])
