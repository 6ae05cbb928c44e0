"""Names causes that the run saw: which rule each breaks and what to say about it.

One module a kind, named like its twin in ``runtime/causes`` that sees it in the user's process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from warplint.model import Counterfactual, Finding, Related
from warplint.probe.causes.adjoints import Adjoints, in_place, is_tie
from warplint.probe.causes.backward_disabled import BackwardDisabled
from warplint.probe.causes.base import Named, Naming
from warplint.probe.causes.consumed_adjoints import ConsumedAdjoints
from warplint.probe.causes.consumed_seeds import ConsumedSeeds
from warplint.probe.causes.copied_again import CopiedAgain
from warplint.probe.causes.dead_objective import DeadObjective
from warplint.probe.causes.dropped_adjoints import DroppedAdjoints
from warplint.probe.causes.duplicate_launches import DuplicateLaunches
from warplint.probe.causes.host_read import HostRead
from warplint.probe.causes.kept_gradients import KeptGradients
from warplint.probe.causes.missing_gradient import MissingGradient
from warplint.probe.causes.not_recorded import LibraryCalls, NotRecorded
from warplint.probe.causes.overwrites import Overwrites
from warplint.probe.causes.rebuilt import Rebuilt
from warplint.probe.causes.replayed_launches import ReplayedLaunches
from warplint.probe.causes.retained_gradients import RetainedGradients
from warplint.probe.causes.seed_mismatch import SeedMismatch
from warplint.probe.causes.stale_reads import StaleReads
from warplint.probe.causes.truncated_horizon import TruncatedHorizon
from warplint.probe.facts import Paths

__all__ = [
    "Named",
    "ambiguous",
    "choose",
    "describe",
    "happened",
    "matches",
    "meant",
    "note",
    "place",
    "seen",
    "underlying",
]

_NAMINGS: dict[str, Naming] = {
    naming.kind.value: naming
    for naming in (
        Adjoints(),
        BackwardDisabled(),
        MissingGradient(),
        NotRecorded(),
        LibraryCalls(),
        HostRead(),
        CopiedAgain(),
        KeptGradients(),
        Overwrites(),
        Rebuilt(),
        ReplayedLaunches(),
        RetainedGradients(),
        ConsumedAdjoints(),
        ConsumedSeeds(),
        DeadObjective(),
        DroppedAdjoints(),
        DuplicateLaunches(),
        SeedMismatch(),
        StaleReads(),
        TruncatedHorizon(),
    )
}


def describe(cause: dict[str, Any], paths: Paths) -> Named:
    """The rule, the sentence and the places for a cause confirmed by the probe."""
    return _NAMINGS[cause["kind_of_cause"]].describe(cause, paths)


def underlying(cause: dict[str, Any], seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The cause behind a cause, among those that were seen in the same run."""
    if cause["kind_of_cause"] != Counterfactual.REPLACE_ADJOINT.value:
        return cause
    return in_place(cause, seen) or cause


def matches(finding: Finding, cause: dict[str, Any], paths: Paths) -> bool:
    """Whether a static finding predicted this very cause."""
    return _NAMINGS[cause["kind_of_cause"]].matches(finding, cause, paths)


def choose(matching: list[Finding], cause: dict[str, Any], paths: Paths) -> list[Finding]:
    """Which of the findings that predicted a confirmed cause are confirmed with it."""
    return _NAMINGS[cause["kind_of_cause"]].choose(matching, cause, paths)


def happened(finding: Finding, cause: dict[str, Any]) -> bool:
    """Whether the hazard a finding predicted was really met in a run whose gradient is right."""
    return _NAMINGS[cause["kind_of_cause"]].happened(finding, cause)


def seen(cause: dict[str, Any], paths: Paths) -> tuple[Related, ...]:
    """What the run saw of a cause that was predicted, and the prediction could not say."""
    return _NAMINGS[cause["kind_of_cause"]].seen(cause, paths)


def meant(found: Sequence[dict[str, Any]], paths: Paths) -> bool:
    """Whether the code says of all these causes that they are on purpose.

    An array without a gradient may go with them: nobody gives one to what is meant as a constant.
    """
    said = [_NAMINGS[c["kind_of_cause"]].meant(c, paths) for c in found]
    silent = [c["kind_of_cause"] for c, says in zip(found, said, strict=True) if not says]
    return any(said) and all(kind == Counterfactual.SET_REQUIRES_GRAD.value for kind in silent)


def note(cause: dict[str, Any], paths: Paths) -> str | None:
    """What is worth saying of a cause that is on purpose."""
    return _NAMINGS[cause["kind_of_cause"]].note(cause, paths)


def ambiguous(found: Sequence[dict[str, Any]]) -> bool:
    """Whether kernels that select among equal numbers are all there is to these causes.

    What such a kernel has written is another number than it began with: that goes with it.
    """
    selecting = {c["kernel"] for c in found if is_tie(c)}
    return bool(selecting) and all(c.get("kernel") in selecting for c in found)


def place(cause: dict[str, Any]) -> list[Any]:
    """Where a cause is at work and what the user calls its array: (file, line, name)."""
    file, line = cause["stack"][0][:2] if cause["stack"] else ("?", 1)
    return [file, line, cause.get("name") or cause.get("buffer") or "an array"]
