"""What the numbers alone say."""

from __future__ import annotations

import pytest
from verdict_facts import check, episode

from warplint.probe.signature import signature


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
