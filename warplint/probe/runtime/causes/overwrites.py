"""Values that recorded launches read and that something overwrote before the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..hooks import Event
from ..snapshots import Snapshots
from .base import CounterfactualRun, Kind


class Overwrites(Kind):
    """Puts back, around each adjoint, what the selected overwrites destroyed."""

    NAME = "overwrite"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.snapshots = Snapshots(run.stream, self.removes)

    def start(self) -> None:
        self.snapshots.active = True

    def before(self, event: Event) -> None:
        self.snapshots.before(event)

    def after(self, event: Event) -> None:
        self.snapshots.after(event)

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        return self.snapshots.around_adjoint(call, run)

    def found(self) -> list[dict[str, Any]]:
        return list(self.snapshots.hazards.values())
