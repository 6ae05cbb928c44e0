"""The kinds of causes a counterfactual run can see and take away, one module each.

Adding a kind: a module here with a subclass of ``Kind``, its line in ``KINDS``, and a module of
the same name in ``warplint/probe/causes`` that names the rule it breaks.
"""

from __future__ import annotations

from .adjoints import Adjoints
from .backward_disabled import BackwardDisabled
from .base import CounterfactualRun, Kind
from .consumed_adjoints import ConsumedAdjoints
from .consumed_seeds import ConsumedSeeds
from .copied_again import CopiedAgain
from .dead_objective import DeadObjective
from .dropped_adjoints import DroppedAdjoints
from .duplicate_launches import DuplicateLaunches
from .host_read import HostRead
from .kept_gradients import KeptGradients
from .library_calls import LibraryCalls
from .missing_gradient import MissingGradient
from .not_recorded import NotRecorded
from .overwrites import Overwrites
from .rebuilt import Rebuilt
from .replayed_launches import ReplayedLaunches
from .retained_gradients import RetainedGradients
from .seed_mismatch import SeedMismatch
from .stale_reads import StaleReads
from .truncated_horizon import TruncatedHorizon

__all__ = ["KINDS", "CounterfactualRun", "Kind"]

KINDS: tuple[type[Kind], ...] = (
    LibraryCalls,
    BackwardDisabled,
    MissingGradient,
    NotRecorded,
    HostRead,
    CopiedAgain,
    StaleReads,
    ConsumedAdjoints,
    ConsumedSeeds,
    DeadObjective,
    SeedMismatch,
    TruncatedHorizon,
    DroppedAdjoints,
    ReplayedLaunches,
    KeptGradients,
    DuplicateLaunches,
    RetainedGradients,
    Rebuilt,
    Overwrites,
    Adjoints,
)
"""Likeliest first: the order in which the search tries them."""
