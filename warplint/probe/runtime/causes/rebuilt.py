"""Hash grids and meshes that are built anew between a launch that asks them and its adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp

from .. import arrays
from ..hooks import Event
from .base import CounterfactualRun, Kind


class Rebuilt(Kind):
    """Gives the selected structures, around each adjoint, what they held when the launch asked them."""

    NAME = "rebuilt"

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.known: dict[int, Any] = {}
        """Structures by the number that kernels know them by."""
        self.asked: dict[int, tuple[Any, list[tuple[Any, Any]]]] = {}
        """By the identity of a recorded launch's inputs: these, and the structures with what they held."""
        self.built: dict[int, Event] = {}
        """The last operation that built a structure."""
        self.causes: dict[tuple, dict[str, Any]] = {}

    def after(self, event: Event) -> None:
        if event.kind == "build":
            structure = event.details["structure"]
            self.known[int(structure.id)] = structure
            self.built[id(structure)] = event
        elif event.kind == "launch" and event.recorded and self.known:
            found = [self.known[n] for n in _numbers(event.details["inputs"]) if n in self.known]
            if found:
                inputs = event.tape.launches[-1][3]
                self.asked[id(inputs)] = (inputs, [(s, _held(s)) for s in found])

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        inputs, pairs = self.asked.get(id(call["inputs"]), (None, []))
        if inputs is not call["inputs"] or not self.run.started:
            return run()
        changed = [(s, then, _held(s)) for s, then in pairs if _held(s) != then]
        put = [(s, then, now) for s, then, now in changed if self.removes(self.note(s))]
        for structure, then, _ in put:
            _build(structure, then)
        try:
            return run()
        finally:
            for structure, _, now in put:
                _build(structure, now)

    def note(self, structure: Any) -> tuple:
        event = self.built[id(structure)]
        file, line = event.stack[0][:2] if event.stack else ("?", 0)
        key = (self.NAME, file, line)
        kind = type(structure).__name__
        self.causes.setdefault(key, {"key": key, "stack": event.stack, "structure": kind, "buffer": None})
        return key

    def found(self) -> list[dict[str, Any]]:
        return list(self.causes.values())


def _numbers(inputs: Any) -> list[int]:
    found = []
    for value in inputs:
        plain = getattr(value, "value", value)
        if isinstance(plain, int) and not isinstance(plain, bool):
            found.append(plain)
    return found


def _held(structure: Any) -> tuple:
    """The points of a structure as it was built, and the radius of a grid."""
    if isinstance(structure, warp.Mesh):
        return (arrays.content(structure.points), None)
    return tuple(structure._warplint_built)


def _build(structure: Any, held: tuple) -> None:
    data, radius = held
    if isinstance(structure, warp.Mesh):
        arrays.put(structure.points, data)
        structure.refit()
        return
    points = warp.empty(len(data) // 12, dtype=warp.vec3, device="cpu")
    arrays.put(points, data)
    structure.build(points, radius)
    structure._warplint_built = (data, radius)
