"""The custom adjoints that a program's kernels use, compared with the derivatives of their functions.

Where the gradient as a whole is right, or cannot be measured, an adjoint may still be wrong: for
arguments that this run did not come to, or beside a constant that hides all changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arrays
from .forks import Reporter
from .function_tests import custom_adjoints, test_function
from .hooks import Event, Observer, Stream
from .structure import Episode

MOST = 2000
"""Numbers that are kept of the arrays of one launch."""
FUNCTIONS = 6


class MetFunctions(Observer):
    """Notes what the launches of an episode call, tests that at the backward pass, and leaves."""

    def __init__(self, stream: Stream, reporter: Reporter, episode: Episode) -> None:
        self.stream = stream
        self.reporter = reporter
        self.episode = episode
        self.started = False
        self.functions: dict[int, tuple[Any, list[Any]]] = {}

    def before(self, event: Event) -> None:
        if event.name == self.episode.start:
            self.started = True
        if not self.started:
            return
        if event.kind == "launch" and event.recorded:
            self.look(event)
        elif event.kind == "backward":
            self.leave()

    def finished(self, error: BaseException | None) -> None:
        self.leave()

    def look(self, event: Event) -> None:
        met: list[Any] | None = None
        for function in custom_adjoints(event.details["object"]):
            kept = self.functions.setdefault(id(function), (function, []))[1]
            if len(kept) > FUNCTIONS:
                continue
            if met is None:
                met = [_numbers(array) for _, array in event.arrays if arrays.is_float(array)]
            kept += met

    def leave(self) -> None:
        rows = []
        for function, met in list(self.functions.values())[:FUNCTIONS]:
            try:
                row = test_function(self.stream, function, np.concatenate(met).tolist() if met else ())
            except Exception:
                continue
            if row is not None:
                rows.append(row)
        self.reporter.leave(rows)


def _numbers(array: Any) -> Any:
    """Finite numbers out of an array, evenly spread over it."""
    values = np.ravel(arrays.memory(array)).astype(np.float64)
    values = values[:: max(1, len(values) // MOST)]
    return values[np.isfinite(values)]
