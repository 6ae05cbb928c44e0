"""What `warplint verify` asks for beside the verdicts: where, what of the training, how it was found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from . import judge, training
from .hooks import Stream
from .locate import Locator
from .measure import Measured
from .structure import Episode, Structure
from .targets import family_key

LEAST_SECONDS = 4.0
"""Time below which nothing more is begun."""


def explained(structure: Structure) -> dict[str, Any]:
    """How the parameters, the objective and the consumed gradient were found."""
    rows: dict[Any, dict[str, Any]] = {}
    for episode in structure.episodes:
        if not episode.reads:
            continue
        row = rows.setdefault(
            family_key(episode, structure) if episode.leaf else episode.serial, _row(episode)
        )
        row["iterations"] += 1
    return {
        "parameters": list(rows.values()),
        "tapes": structure.tapes,
        "backwards": structure.backwards,
        "gradient_reads": structure.gradient_reads,
        "ending": structure.ending,
        "events": structure.events,
    }


def _row(episode: Episode) -> dict[str, Any]:
    read = episode.reads[-1]
    return {
        "parameter": episode.label,
        "place": list(episode.place),
        "shape": list(episode.shape),
        "dtype": episode.dtype,
        "leaf": episode.leaf,
        "read": list(read.name[:2]),
        "how": read.kind,
        "backwards": [
            {"loss": b.loss, "kind": b.kind, "stack": [list(f[:2]) for f in b.stack[:1]]}
            for b in episode.backwards[:8]
        ],
        "calls": len(episode.backwards),
        "iterations": 0,
    }


def localized(
    stream: Stream, run_user: Callable[[], None], measured: list[Measured], deadline: float
) -> tuple[dict[str, Any] | None, int]:
    """Where autodiff parts from finite differences, for the first parameter that is wrong; and the runs."""
    wrong = [m for m in measured if m.outcome == judge.DIFFERS and m.reported is None]
    if not wrong or deadline - time.monotonic() < LEAST_SECONDS:
        return None, 0
    subject = min(wrong, key=lambda m: m.iteration)
    locator = Locator(stream, run_user, subject, measured, deadline)
    found = locator.locate()
    return found, locator.runs


def course_of(
    stream: Stream, run_user: Callable[[], None], measured: list[Measured], deadline: float
) -> dict[str, Any] | None:
    """What training makes of right gradients."""
    if any(m.outcome == judge.DIFFERS for m in measured):
        return None
    right = [m for m in measured if m.outcome == judge.AGREES]
    return training.course(stream, run_user, right, deadline) if right else None
