"""What the measured iterations of one parameter, its rows, say taken together.

A row is one message of the runtime: a parameter at one iteration, with its checks, one a direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from warplint.probe import Objective, Slope
from warplint.probe.names import parameter_key

_TOO_LATE = "the time limit was reached"


def first_objectives(program: str, episodes: list[dict[str, Any]]) -> Iterator[Objective]:
    """The objective of each parameter in the first iteration, which no update has touched yet."""
    for rows in by_parameter(episodes):
        first = rows[0]
        if first["iteration"] == 1 and first.get("value") is not None:
            value, sigma = float(first["value"]), float(first.get("sigma") or 0.0)
            curve = tuple(float(row["value"]) for row in rows if row.get("value") is not None)
            # Random signs are drawn anew where the program does more or less before.
            drawn = f" drawn at {first['replay']['episode']['start_total']}" if "replay" in first else ""
            slopes = tuple(
                Slope(
                    c["direction"] if c["direction"].startswith("coordinate [") else c["direction"] + drawn,
                    c["ad"],
                    c["fd"],
                    c["noise"],
                )
                for c in first["checks"]
                # The gradient is a direction of its own in every program.
                if c["direction"] != "gradient" and not c["outcome"].startswith("inconclusive")
            )
            yield Objective(program, first["parameter"], value, sigma, curve, slopes)


def by_parameter(episodes: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The rows of each parameter, in the order of its iterations."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in episodes:
        groups.setdefault(parameter_key(row), []).append(row)
    return [sorted(rows, key=lambda r: r["iteration"]) for rows in groups.values()]


def with_copies_held(row: dict[str, Any]) -> dict[str, Any]:
    """The row as measured with its host copies held constant."""
    if not row["constant"]:
        return row
    return {**row, "checks": row["held"], "outcome": "agrees"}


def single(rows: list[dict[str, Any]]) -> bool:
    """Whether all rows are of one parameter."""
    return len({parameter_key(r) for r in rows}) == 1


def is_wrong(rows: list[dict[str, Any]]) -> bool:
    """A difference counts when it shows again: in a second direction or a second iteration."""
    differing = [
        c for r in rows if r["outcome"] == "differs" for c in r["checks"] if c["outcome"] == "differs"
    ]
    if len(differing) >= 2 or any(not math.isfinite(c["ad"]) for c in differing):
        return True  # NaN beside a finite difference leaves nothing to reproduce
    # A scalar parameter has no second direction; its later iterations were measured where there are any.
    return bool(differing) and all(math.prod(r["shape"]) * _width(r) == 1 for r in rows)


def is_weak(rows: list[dict[str, Any]]) -> bool:
    """Nothing agrees, or a difference was seen that could not be reproduced."""
    outcomes = {r["outcome"] for r in rows}
    return "agrees" not in outcomes or "differs" in outcomes


def _width(row: dict[str, Any]) -> int:
    return int(row["components"])


def weak_reason(rows: list[dict[str, Any]]) -> str:
    """Why a parameter could not be told."""
    outcomes = [r["outcome"] for r in rows]
    if "differs" in outcomes:
        return "a difference showed in one direction only and could not be reproduced"
    # That a later iteration has run away, or found no time, says less than why the first could not
    # be measured.
    telling = [o for o in outcomes if not o.endswith(("at this iteration", _TOO_LATE))] or outcomes
    return telling[-1].removeprefix("inconclusive: ")
