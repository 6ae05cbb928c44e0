"""Names causes that the run saw: which rule each breaks and what to say about it.

One module a kind, named like its twin in ``runtime/causes`` that sees it in the user's process.
"""

from __future__ import annotations

from typing import Any

from warplint.model import Finding
from warplint.probe.causes.base import Named, Naming
from warplint.probe.causes.kept_gradients import KeptGradients
from warplint.probe.causes.missing_gradient import MissingGradient
from warplint.probe.causes.overwrites import Overwrites
from warplint.probe.causes.replayed_launches import ReplayedLaunches
from warplint.probe.causes.retained_gradients import RetainedGradients
from warplint.probe.causes.stale_reads import StaleReads
from warplint.probe.facts import Paths

__all__ = ["Named", "describe", "happened", "matches"]

_NAMINGS: dict[str, Naming] = {
    naming.kind.value: naming
    for naming in (
        KeptGradients(),
        MissingGradient(),
        Overwrites(),
        ReplayedLaunches(),
        RetainedGradients(),
        StaleReads(),
    )
}


def describe(cause: dict[str, Any], paths: Paths) -> Named:
    """The rule, the sentence and the places for a cause confirmed by the probe."""
    return _NAMINGS[cause["kind_of_cause"]].describe(cause, paths)


def matches(finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
    """Whether a static finding predicted this very cause."""
    return _NAMINGS[cause["kind_of_cause"]].matches(finding, cause, paths)


def happened(finding: Finding, cause: dict[str, Any]) -> bool:
    """Whether the hazard a finding predicted was really met in a run whose gradient is right."""
    return _NAMINGS[cause["kind_of_cause"]].happened(finding, cause)
