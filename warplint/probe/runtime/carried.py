"""State that one tape leaves and the next one begins with.

The backward pass of a tape ends where its recording began: to it, what an earlier tape computed
is a constant. Held at its unperturbed content, it makes the finite difference of that truncated
objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import arrays
from .hooks import Event, Observer
from .sites import Sites


@dataclass
class Windows:
    """What the objective is to passes that each end where their own tape began."""

    names: list[str]
    """Arrays that carry the state from one tape to the next."""
    passes: list[tuple]
    """Call stacks of the backward calls."""
    count: int
    held: dict[str, float]
    """Per differing direction: the finite difference with the state at every tape's start held."""


class CarriedState(Observer):
    """Learns in an unperturbed run what is carried between recordings, and holds it in others."""

    def __init__(self, sites: Sites) -> None:
        self.sites: Sites | None = sites
        self.session = 0
        self.written: dict[int, tuple[Any, int]] = {}
        """Arrays by identity, with the recording that last wrote them."""
        self.losses: set[int] = set()
        self.contents: dict[tuple, dict[str, bytes]] = {}
        """What the first operations of a recording found, by event name and argument."""
        self.names: list[str] = []
        self.passes: list[tuple] = []
        """Call stacks of the backward calls."""
        self.changed = False
        """Whether anything held had another content in a perturbed run."""

    def __getstate__(self) -> dict[str, Any]:
        """What another process needs to hold the state: no arrays."""
        return {**self.__dict__, "written": {}, "losses": set(), "sites": None}

    def __bool__(self) -> bool:
        return bool(self.contents)

    # -- learning ------------------------------------------------------------------------

    def before(self, event: Event) -> None:
        if self.session == 0 and event.tape is not None:
            self.session = 1  # the episode begins inside a recording
        if event.kind == "tape-enter":
            self.session += 1
        elif event.kind == "backward":
            self.passes.append(event.stack)
            if arrays.is_array(event.details.get("loss")):
                self.losses.add(id(arrays.root(event.details["loss"])))
        elif event.kind == "launch":
            for label, array in event.arrays:
                if event.recorded:
                    self.note(event, label, array)
            bases = {id(b): b for b in (arrays.root(a) for _, a in event.arrays) if arrays.is_float(b)}
            event.details["contents before"] = {k: (b, hash(arrays.content(b))) for k, b in bases.items()}
        elif event.kind in ("copy", "assign") and event.recorded:
            self.note(event, "source", event.source)

    def after(self, event: Event) -> None:
        if event.kind == "launch":
            for key, (base, digest) in event.details.pop("contents before", {}).items():
                if hash(arrays.content(base)) != digest:
                    self.mark(key, base, self.session if event.recorded else None)
        elif event.kind in ("copy", "assign") and arrays.is_array(event.source):
            base = arrays.root(event.target)
            _, earlier = self.written.get(id(arrays.root(event.source)), (None, None))
            self.mark(id(base), base, self.session if event.recorded else earlier)
        elif event.kind in ("assign", "zero", "fill"):
            base = arrays.root(event.target)
            self.mark(id(base), base, None)

    def mark(self, key: int, base: Any, session: int | None) -> None:
        if session is None:
            self.written.pop(key, None)
        else:
            self.written[key] = (base, session)

    def note(self, event: Event, label: str, array: Any) -> None:
        base = arrays.root(array)
        owner, session = self.written.get(id(base), (None, self.session))
        if owner is not base or session >= self.session or id(base) in self.losses:
            return
        if arrays.gradient_owner(base) is not None:
            return
        self.contents.setdefault(event.name, {})[label] = arrays.content(array)
        born = arrays.birth(base)
        name = self.sites.label(born.stack) if born is not None and self.sites is not None else None
        if name is not None and name not in self.names:
            self.names.append(name)

    # -- holding -------------------------------------------------------------------------

    def hold(self, event: Event) -> None:
        held = self.contents.get(event.name)
        if held is None:
            return
        given = event.arrays if event.kind == "launch" else [("source", event.source)]
        for label, array in given:
            data = held.get(label)
            if data is not None and arrays.is_array(array) and arrays.content(array) != data:
                self.changed = True
                arrays.put(array, data)
