"""What the numbers alone say about a wrong gradient, before any cause is looked for."""

from __future__ import annotations

import math
from typing import Any

_SAME = 1.0e-3


def signature(episodes: list[dict[str, Any]]) -> str:
    """Names the pattern of a parameter's episodes (probe rows of one parameter, in order)."""
    if not any(e["outcome"] == "differs" for e in episodes):
        return "correct" if any(e["outcome"] == "agrees" for e in episodes) else "undecided"
    if any(not e["finite"] for e in episodes):
        return "nan-inf"
    if any(e["stale_view"] for e in episodes):
        return "stale"
    wrong = [e for e in episodes if e["outcome"] == "differs"]
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
    return factor


HINTS = {
    "zero": "the whole gradient is zero: look for an array without requires_grad, a launch outside the tape "
    "or a kernel compiled without its backward pass",
    "nan-inf": "look for a square root, a division or a logarithm at zero in the kernels on the tape",
    "grows-with-iterations": "the error grows with the iteration: zero the gradients (tape.zero()) and use a "
    "fresh or reset tape in every iteration",
    "exact-factor": "autodiff is off by one constant factor: look at the seed of the backward pass and for "
    "launches recorded or gradients counted more than once",
    "subtly-wrong": "the size is plausible, the value is wrong: look in the kernels on the tape for values "
    "carried through runtime loops, components assigned twice, in-place updates and custom adjoints",
    "stale": "the gradient array was read as a live view and changed before it was used: copy it "
    "(grad.numpy().copy()) before zeroing",
    "per-window-only": "each pass is right up to where its own tape began: hand the adjoint of what the "
    "tapes carry on, or record them as one",
    "sparse": "only some entries are wrong: look for values that leave the tape (numpy, float()), "
    "counters and branches",
}
"""What to look for when no known cause explains a difference, by signature."""
