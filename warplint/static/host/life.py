"""The life of gradients: in which order the host recorded, went back, reset, read and updated.

The dataflow graph of one tape scope says nothing about what happens between two of them. These
steps do: which tape was entered when, which gradient was read after which pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    off the tape; adjoint: a manual adjoint launch accumulates into it); or forget: from here on
    nothing is known of any gradient (a captured graph was replayed, another function was entered).
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
    guards: Mapping[int, int] = field(default_factory=dict)
    """Arms of undecided branches it stands in."""
    path: tuple[Site, ...] = ()
    """The statements of the callers, outermost first."""

    def place_beside(self, other: Step) -> Site:
        """Where it happens in the innermost function in which both do: there their order is decided."""
        mine, others = (*self.path, self.statement), (*other.path, other.statement)
        for position, (statement, its) in enumerate(zip(mine, others, strict=False)):
            if statement != its:
                return statement if position < len(self.path) else self.site
        return self.site

    def compatible(self, other: Step) -> bool:
        """Whether both can happen in one run (they are not in opposite arms of a branch)."""
        return all(other.guards.get(branch, arm) == arm for branch, arm in self.guards.items())


@dataclass
class Life:
    """The steps of one entry, in order."""

    steps: list[Step] = field(default_factory=list)
    manual: set[Buffer] = field(default_factory=set)
    """Arrays that manual adjoint launches accumulate into."""
    checking: int = 0
    """Inside of how many assertions the host is: what they look at is not used."""

    def add(self, kind: str, site: Site, statement: Site | None, **what: Any) -> None:
        if len(self.steps) < _MAX_STEPS and not (self.checking and kind in ("read", "use")):
            self.steps.append(Step(kind, site, statement or site, **what))

    def forget(self) -> None:
        """Another function is entered: what happened in the last one says nothing about it."""
        if self.steps:
            last = self.steps[-1]
            self.steps.append(Step("forget", last.site, last.statement))

    def handed_on(
        self,
        name: str,
        values: Iterable[Any],
        site: Site,
        statement: Site | None,
        guards: Mapping[int, int],
    ) -> None:
        """Gradients among the arguments of a call that is not followed."""
        for value in _adjoints(values):
            kind = "clear" if "zero" in name or name in ("fill_", "copy") else "read"
            self.add(kind, site, statement, buffer=value.base, copied=True, guards=guards)
            if name == "step":
                self.add("change", site, statement, buffer=value.base, guards=guards)


def _adjoints(values: Iterable[Any], depth: int = 0) -> Iterable[Adjoint]:
    for value in values:
        if isinstance(value, Adjoint):
            yield value
        elif depth < 2 and isinstance(value, (List, tuple)):
            yield from _adjoints(value.items if isinstance(value, List) else value, depth + 1)
        elif depth < 2 and isinstance(value, Dict):
            yield from _adjoints(value.items.values(), depth + 1)
