"""What the numbers alone say about a wrong gradient, and which causes that points at.

``SUSPECTS`` is the one table of it: the search for a cause tries kinds of causes in its order, and
reports list the rules in the same order. Imported outside the user's process too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_SAME = 1.0e-3

OVERWRITES = ("WL103", "WL104", "WL105", "WL102", "WL107", "WL106", "WL108", "WL101", "WL110")

SUSPECTS: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "correct": (),
    "undecided": (),
    "zero": (
        ("consumed-adjoint", ("WL504",)),
        ("library-call", ("WL203",)),
        ("no-gradient", ("WL201",)),
        ("backward-disabled", ("WL202",)),
        ("not-recorded", ("WL203",)),
        ("host-read", ("WL204",)),
        ("dead-objective", ("WL208",)),
        ("stale-gradient", ("WL502",)),
        ("consumed-seed", ("WL502",)),
        ("adjoint", ("WL207", "WL206")),
    ),
    "nan-inf": (
        ("adjoint", ("WL305", "WL304", "WL303")),
        ("overwrite", ("WL106", "WL108")),
    ),
    "stale": (
        ("stale-gradient", ("WL502",)),
        ("consumed-seed", ("WL502",)),
        ("kept-gradient", ("WL501",)),
    ),
    "per-window-only": (
        ("truncated-horizon", ("WL503",)),
        ("host-read", ("WL503",)),
        ("dropped-adjoint", ("WL509",)),
    ),
    "exact-factor": (
        ("seed-mismatch", ("WL507",)),
        ("replayed-launches", ("WL506",)),
        ("kept-gradient", ("WL501",)),
        ("duplicate-launch", ("WL505",)),
        ("retained-gradient", ("WL504",)),
        ("copy-adjoint", ("WL109",)),
        ("adjoint", ("WL401", "WL402")),
        ("no-gradient", ("WL201",)),
        ("not-recorded", ("WL203",)),
    ),
    "grows-with-iterations": (
        ("replayed-launches", ("WL506",)),
        ("kept-gradient", ("WL501",)),
        ("consumed-seed", ("WL502",)),
        ("stale-gradient", ("WL502",)),
        ("overwrite", ("WL106",)),
    ),
    "sparse": (
        ("no-gradient", ("WL201",)),
        ("not-recorded", ("WL203",)),
        ("host-read", ("WL204",)),
        ("adjoint", ("WL403", "WL303", "WL306", "WL206")),
        ("overwrite", OVERWRITES),
    ),
    "subtly-wrong": (
        ("overwrite", OVERWRITES),
        ("adjoint", ("WL301", "WL302", "WL303", "WL401", "WL402", "WL403")),
        ("retained-gradient", ("WL504",)),
        ("dropped-adjoint", ("WL509",)),
        ("copy-adjoint", ("WL109",)),
        ("truncated-horizon", ("WL503",)),
        ("no-gradient", ("WL201",)),
        ("not-recorded", ("WL203",)),
        ("host-read", ("WL204",)),
    ),
}
"""Signature -> kinds of causes (``Kind.NAME``), the likeliest first, with the rules that they break."""


def kinds(name: str) -> tuple[str, ...]:
    """The kinds of causes that a signature points at, the likeliest first."""
    return tuple(kind for kind, _ in SUSPECTS[name.partition("(")[0]])


def rules(name: str) -> tuple[str, ...]:
    """The rules that a signature points at, the likeliest first."""
    return tuple(dict.fromkeys(rule for _, broken in SUSPECTS[name.partition("(")[0]] for rule in broken))


def signature(episodes: Sequence[dict[str, Any]]) -> str:
    """Names the pattern of a parameter's episodes (rows of ``messages.episode``, in order)."""
    if not any(e["outcome"] == "differs" for e in episodes):
        return "correct" if any(e["outcome"] == "agrees" for e in episodes) else "undecided"
    wrong = [e for e in episodes if e["outcome"] == "differs"]
    if any(not e["finite"] for e in episodes):
        return "nan-inf"
    if any(e["stale_view"] or e.get("lags") for e in wrong):
        return "stale"
    if all(e["zero"] for e in wrong):
        return "zero"
    if all(e.get("per_window") for e in wrong):
        return "per-window-only"
    factors = {e["iteration"]: _factor(e) for e in wrong}
    first = next((e for e in episodes if e["iteration"] == 1), None)
    if first is not None and first["outcome"] == "agrees":
        return "grows-with-iterations"
    values = [f for f in factors.values() if f is not None]
    if len(values) == len(wrong) and values:
        if max(values) - min(values) <= 4.0 * _SAME * max(abs(v) for v in values):
            return f"exact-factor({values[0]:.4g})"
        return "grows-with-iterations"
    if any(c["outcome"] == "agrees" and abs(c["fd"]) > c["noise"] for e in wrong for c in e["checks"]):
        return "sparse"
    return "subtly-wrong"


def _factor(episode: dict[str, Any]) -> float | None:
    """The one factor between autodiff and finite differences in all directions, if there is one.

    Taken from the sharpest direction; every other must agree with it within its own noise.
    """
    checks = [
        c for c in episode["checks"] if c["fd"] and math.isfinite(c["ad"]) and abs(c["fd"]) > 5.0 * c["noise"]
    ]
    if len(checks) < 2:
        return None
    best = min(checks, key=lambda c: c["noise"] / abs(c["fd"]))
    factor = best["ad"] / best["fd"]
    for check in checks:
        slack = _SAME * abs(check["ad"]) + 2.0 * abs(factor) * check["noise"]
        if abs(check["ad"] - factor * check["fd"]) > slack:
            return None
    return float(factor)
