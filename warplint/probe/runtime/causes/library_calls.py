"""What functions of Warp's library compute natively, of which no tape knows."""

from __future__ import annotations

from typing import Any

from .. import arrays, judge
from ..episodes import GradientChild, ObjectiveChild
from ..forks import Reporter
from ..hooks import Event
from ..library import INTEGRALS
from .backward_disabled import has_backward
from .base import CounterfactualRun, Kind


class LibraryCalls(Kind):
    """What a solver or an assembled integral returns goes on as a constant.

    Its derivative is not known here, but can be measured: the finite difference with the results
    of the selected calls held constant lacks exactly what autodiff lacks for them.
    """

    NAME = "library-call"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.causes: dict[tuple, dict[str, Any]] = {}
        self.recorded: set[tuple] = set()
        """(file, line, array) of recorded launches with backward code."""
        self.answered = False
        """Whether user code recorded adjoints of its own (a solve with the transposed matrix)."""
        self.missing: dict[str, float] = {}
        """Per direction: finite difference with the results held minus the one without."""

    def measure(self, parameter: Any) -> None:
        places = {key[1:3] for key in self.run.removed if key[0] == self.NAME}
        measured = self.run.measured
        if not places or parameter is None:
            return
        contents: dict[tuple, list[bytes]] = {}
        episode = self.run.episode
        base = self.run.spawn(lambda reporter: _Noting(episode, parameter, reporter, extra=lambda: contents))
        contents.update(base["extra"])
        memory = arrays.memory(parameter)

        def at(vector: Any, t: float) -> float:
            def make(reporter: Reporter) -> ObjectiveChild:
                memory[...] = (measured.start + t * vector).astype(memory.dtype)
                child = _Holding(episode, parameter, reporter, base["seeds"], base["included"])
                child.contents = {name: c for name, c in contents.items() if name[:2] in places}
                return child

            return float(self.run.spawn(make)["objective"])

        for name, check in measured.checks:
            if check.outcome in (judge.DIFFERS, judge.AGREES, judge.MEASURED):
                vector, h = measured.vectors[name], check.step
                self.missing[name] = (at(vector, h) - at(vector, -h)) / (2.0 * h) - check.fd

    def before(self, event: Event) -> None:
        if event.kind == "backward":
            made = [launch for launch in event.details["tape"].launches if callable(launch)]
            self.answered |= any(self.stream.sites.name(_file(one)) is not None for one in made)

    def after(self, event: Event) -> None:
        if not self.run.started:
            return
        place = event.stack[0][:2] if event.stack else ("?", 0)
        if event.kind == "launch" and event.recorded and has_backward(event.details["object"]):
            self.recorded.update((*place, id(arrays.root(a))) for _, a in event.arrays)
        elif event.kind == "library":
            changed = event.details.get("changed", ())
            solver = not any(event.details["kernel"] in names for names in INTEGRALS.values())
            made = [a for _, a in event.arrays if not solver or any(arrays.root(a) is b for b in changed)]
            cut = [a for a in made if self.is_cut(a, place)]
            if cut:
                key = (self.NAME, *place)
                self.causes.setdefault(
                    key,
                    {
                        "key": key,
                        "stack": event.stack,
                        "how": "Warp's library",
                        "operation": "library",
                        "kernel": event.details["kernel"],
                        "buffer": self.run.name_of(cut[0]),
                        "reader": None,
                    },
                )

    def is_cut(self, array: Any, place: tuple) -> bool:
        """Whether no recorded launch of the call can have been the one that made this array."""
        base = arrays.root(array)
        born = arrays.birth(base)
        returned = born is not None and bool(born.stack) and born.stack[0][:2] == place
        return (returned and base.grad is None) or (*place, id(base)) not in self.recorded

    def found(self) -> list[dict[str, Any]]:
        return [] if self.answered else list(self.causes.values())

    def corrections(self) -> dict[str, float]:
        return self.missing


def _file(function: Any) -> str:
    code = getattr(getattr(function, "func", function), "__code__", None)
    return getattr(code, "co_filename", "")


class _Noting(GradientChild):
    """Keeps what library calls made."""

    def after(self, event: Event) -> None:
        if event.kind == "library" and self.extra is not None:
            self.extra()[event.name] = [arrays.content(a) for _, a in event.arrays]
        super().after(event)


class _Holding(ObjectiveChild):
    """Puts back what library calls made in the unperturbed run."""

    contents: dict[tuple, list[bytes]]

    def after(self, event: Event) -> None:
        if event.kind == "library":
            for (_, array), data in zip(event.arrays, self.contents.get(event.name, ())):
                arrays.put(array, data)
        super().after(event)
