"""The life of gradients: in which order the host recorded, went back, reset, read and updated.

The dataflow graph of one tape scope says nothing about what happens between two of them. These
steps do: which tape was entered when, which gradient was read after which pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from warplint.static.host.events import Recording
from warplint.static.host.values import Adjoint, Buffer, Dict, List, Tape
from warplint.static.kernels.summary import Site

__all__ = ["Life", "Step"]

_MAX_STEPS = 4000


@dataclass(frozen=True, eq=False)
class Step:
    """One thing the host did with a tape or with the gradient of a buffer.

    ``kind``: enter, backward, zero or reset (of ``tape``); clear, read, use or change (of
    ``buffer``: its gradient was overwritten, read, a view of it was used; its value was changed
    off the tape; adjoint: a manual adjoint launch accumulates into it).
    """

    kind: str
    site: Site
    statement: Site
    tape: Tape | None = None
    recording: Recording | None = None
    buffer: Buffer | None = None
    read: Site | None = None
    """Where the view that is used was taken."""
    copied: bool = False
    """What was read does not change any more."""
    source: Buffer | None = None
    """What was copied into the buffer."""


@dataclass
class Life:
    """The steps of one entry, in order."""

    steps: list[Step] = field(default_factory=list)
    manual: set[Buffer] = field(default_factory=set)
    """Arrays that manual adjoint launches accumulate into."""

    def add(self, kind: str, site: Site, statement: Site | None, **what: Any) -> None:
        if len(self.steps) < _MAX_STEPS:
            self.steps.append(Step(kind, site, statement or site, **what))

    def handed_on(self, name: str, values: Iterable[Any], site: Site, statement: Site | None) -> None:
        """Gradients among the arguments of a call that is not followed."""
        for value in _adjoints(values):
            kind = "clear" if "zero" in name or name in ("fill_", "copy") else "read"
            self.add(kind, site, statement, buffer=value.base, copied=True)
            if name == "step":
                self.add("change", site, statement, buffer=value.base)


def _adjoints(values: Iterable[Any], depth: int = 0) -> Iterable[Adjoint]:
    for value in values:
        if isinstance(value, Adjoint):
            yield value
        elif depth < 2 and isinstance(value, (List, tuple)):
            yield from _adjoints(value.items if isinstance(value, List) else value, depth + 1)
        elif depth < 2 and isinstance(value, Dict):
            yield from _adjoints(value.items.values(), depth + 1)
