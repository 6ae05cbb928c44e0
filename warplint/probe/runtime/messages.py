"""What was measured, as plain values for the report pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import judge
from .attribute import RESOLVED, Attribution
from .measure import Measured
from .structure import Episode


def episodes(measured: Sequence[Measured]) -> list[dict[str, Any]]:
    """A row for each, in order."""
    return [episode(m, next((p for p in measured if _comes_before(p, m)), None)) for m in measured]


def episode(m: Measured, before: Measured | None = None) -> dict[str, Any]:
    episode = m.episode
    gradient = m.gradient
    finite = gradient is None or bool(np.all(np.isfinite(gradient)))
    losses = {b.loss for b in episode.backwards if b.loss}
    return {
        "parameter": episode.label,
        "place": list(episode.place),
        "shape": list(episode.shape),
        "dtype": episode.dtype,
        "start": list(episode.start),
        "variable": _variable(episode),
        "components": int(np.size(m.start) // max(1, int(np.prod(episode.shape))))
        if m.start is not None
        else 1,
        "iteration": m.iteration,
        "outcome": m.outcome,
        "problem": m.problem,
        "objective": _objective(m, losses),
        "objective_kind": episode.backwards[0].kind if episode.backwards else "loss",
        "backward": [list(f[:2]) for f in episode.backwards[-1].stack[:4]] if episode.backwards else [],
        "backward_calls": m.backwards,
        "value": m.objective,
        "finite": finite,
        "zero": gradient is not None and not np.any(gradient),
        "stale_view": m.stale_view,
        "lags": before is not None and m.outcome == judge.DIFFERS and _lags(m, before),
        "constant": [list(place) for place in m.constant],
        "replay": _replay(m),
        "per_window": _is_right_per_window(m),
        "reported": m.reported is not None,
        "sigma": m.sigma,
        "scale": m.scale,
        "checks": [_check(name, c) for name, c in m.checks],
        "held": [_check(name, c) for name, c in m.held],
    }


def _comes_before(p: Measured, m: Measured) -> bool:
    """Whether this is the same parameter one iteration earlier."""
    same = p.episode.variable == m.episode.variable and p.episode.family == m.episode.family
    return same and p.iteration == m.iteration - 1


def _lags(m: Measured, before: Measured) -> bool:
    """Whether the gradient is the one that belongs to the parameter one iteration earlier."""
    if m.gradient is None or not np.all(np.isfinite(m.gradient)):
        return False
    met = False
    for name, check in before.checks:
        vector = before.vectors[name]
        if vector.size != m.gradient.size or not abs(check.fd) > 5.0 * check.uncertainty:
            continue
        ad = float(np.sum(np.reshape(m.gradient, vector.shape) * vector))
        if not abs(ad - check.fd) <= max(2.0 * check.uncertainty, RESOLVED * abs(check.fd)):
            return False
        met = True
    return met


def _objective(m: Measured, losses: set[str]) -> str | None:
    if m.reported is not None:
        file, line = m.reported.line
        return f"{m.reported.name} ({file}:{line})"
    return sorted(losses)[0] if losses else None


def _is_right_per_window(m: Measured) -> bool:
    """Whether autodiff agrees with the objective whose windows do not know of each other."""
    held = m.windows.held if m.windows is not None else {}
    for name, check in m.checks:
        if name in held:
            signal = max(abs(check.ad), abs(held[name]))
            if not abs(held[name] - check.ad) <= max(2.0 * check.uncertainty, RESOLVED * signal):
                return False
    return bool(held)


def _check(name: str, c: judge.Judgement) -> dict[str, Any]:
    return {
        "direction": name,
        "outcome": c.outcome,
        "ad": c.ad,
        "fd": c.fd,
        "noise": c.uncertainty,
        "step": c.step,
        "relative_error": c.relative_error,
        "one_sided": list(c.one_sided) if c.one_sided is not None else None,
        "ladder": [list(row) for row in c.ladder] if c.outcome.startswith("inconclusive") else [],
    }


def _variable(episode: Episode) -> str:
    """Tells parameters of one name and place apart, the same in every iteration."""
    return str(episode.variable)


def _replay(m: Measured) -> dict[str, Any]:
    """What it takes to find and measure this episode again in another process."""
    episode = m.episode
    return {
        "episode": {
            "family": episode.family,
            "serial": episode.serial,
            "start": episode.start,
            "start_total": episode.start_total,
            "label": episode.label,
            "place": episode.place,
            "shape": episode.shape,
            "dtype": episode.dtype,
            "reads": [[r.name, r.kind, r.backwards, r.reset] for r in episode.reads],
            "next_start": episode.next_start,
            "next_serial": episode.next_serial,
            "rewritten": episode.rewritten,
            "leaf": episode.leaf,
            "resumed": episode.resumed,
        },
        "iteration": m.iteration,
        "steps": [[name, c.step] for name, c in m.checks],
    }


def attribution(subject: Measured, a: Attribution) -> dict[str, Any]:
    episode = subject.episode
    return {
        "parameter": episode.label,
        "place": list(episode.place),
        "variable": _variable(episode),
        "iteration": subject.iteration,
        "outcome": subject.outcome,
        "before": a.before,
        "after": a.after,
        "resolved": a.resolved,
        "held": a.held,
        "changed": a.changed,
        "runs": a.runs,
        "problem": a.problem,
        "causes": [cause(c) for c in a.causes],
        "confirmed": [cause(c) for c in a.confirmed],
    }


def cause(cause: dict[str, Any]) -> dict[str, Any]:
    plain = dict(cause)
    plain["key_parts"] = cause["key"]
    plain["key"] = list(map(str, cause["key"]))
    plain["kind_of_cause"] = cause["key"][0]
    return plain
