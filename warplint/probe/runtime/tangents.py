"""How every array moves when the parameter moves: derivatives carried along with the program.

Launch by launch: what a launch makes of a displacement of its arguments is a central difference of
that one launch, on the arguments it really got. So the derivative is known at every operation, and
where autodiff parts from it can be told to the launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp

from . import arrays
from .hooks import Event, Stream

MEMORY_LIMIT = 1 << 30
"""Bytes of tangents after which launches are no longer looked at."""


class Launched:
    """One launch: the tangents of its arrays before and after it, per direction."""

    __slots__ = ("after", "before", "event", "graded", "integers", "roots")

    def __init__(self, event: Event, roots: list[Any]) -> None:
        self.event = event
        self.roots = roots
        self.before: dict[str, list[Any]] = {}
        """Per direction and root, None for an array that does not move."""
        self.after: dict[str, list[Any]] = {}
        self.graded: dict[str, list[Any]] = {}
        """After the launch, if only arrays with a gradient had moved before it."""
        self.integers: list[tuple[Any, Any]] = []
        """Indices and counters that the launch changed, with what they were: to run it again without
        these is to run outside of arrays."""


class Tangents:
    """The tangents of all arrays along a few directions, kept on the arrays themselves."""

    def __init__(self, stream: Stream, directions: dict[str, tuple[Any, float]]) -> None:
        self.stream = stream
        self.directions = directions
        self.bytes = 0
        self.incomplete = False
        """Whether some operation could not be followed."""

    def seed(self, parameter: Any) -> None:
        """The parameter moves along each direction."""
        for name, (vector, _) in self.directions.items():
            view = self._writable(parameter, name)
            if view is not None:
                view[...] = vector.reshape(view.shape)

    # -- launches ------------------------------------------------------------------------

    def launch(self, event: Event) -> Launched | None:
        """Tries a launch with its arrays moved to both sides; leaves everything as it was."""
        roots = launch_roots(event)
        call = event.details.get("call")
        moving = [r for r in roots if self._moves(r)]
        if not moving:
            return None
        if call is None or self.bytes > MEMORY_LIMIT:
            self.incomplete = True
            return None
        tried = Launched(event, roots)
        saved = [(arrays.memory(root), arrays.memory(root).copy()) for root in roots]
        tried.integers = [(m, values) for m, values in saved if values.dtype.kind != "f"]
        try:
            for name, (_, step) in self.directions.items():
                before = [_tangents(root).get(name) for root in roots]
                graded = [t if has_gradient(root) else None for root, t in zip(roots, before)]
                tried.before[name] = before
                tried.after[name] = after = difference(self.stream, call, roots, saved, before, step)
                if all(a is b for a, b in zip(before, graded)):
                    tried.graded[name] = after
                else:
                    tried.graded[name] = difference(self.stream, call, roots, saved, graded, step)
        except Exception:
            self.incomplete = True
            return None
        return tried

    def done(self, tried: Launched) -> None:
        """The launch has really run: its results move as the trial said."""
        tried.integers = [(m, values) for m, values in tried.integers if not np.array_equal(m, values)]
        for name, tangents in tried.after.items():
            for root, tangent in zip(tried.roots, tangents):
                known = _tangents(root)
                if tangent is None:
                    known.pop(name, None)
                elif known.get(name) is not tangent:
                    known[name] = tangent
                    self.bytes += tangent.nbytes

    # -- everything else -----------------------------------------------------------------

    def moved(self, event: Event) -> None:
        """A copy hands tangents on; other writes of the host are constants."""
        target, source = event.target, event.source
        if not arrays.is_array(target) or not _follows(arrays.root(target)):
            return
        for name in self.directions:
            given = None
            if arrays.is_array(source) and source.size == target.size and _follows(arrays.root(source)):
                given = self._view(source, name)
            if given is None and name not in _tangents(arrays.root(target)):
                continue
            view = self._writable(target, name)
            if view is not None:
                view[...] = 0.0 if given is None else given.reshape(view.shape)

    # -- storage -------------------------------------------------------------------------

    def _moves(self, root: Any) -> bool:
        return any(name in _tangents(root) for name in self.directions)

    def _view(self, array: Any, name: str) -> Any:
        root = arrays.root(array)
        tangent = _tangents(root).get(name)
        return None if tangent is None else _part(root, array, tangent)

    def _writable(self, array: Any, name: str) -> Any:
        root = arrays.root(array)
        if not _follows(root):
            self.incomplete = True
            return None
        known = _tangents(root)
        old = known.get(name)
        shape = arrays.memory(root).shape
        known[name] = fresh = np.zeros(shape) if old is None else old.copy()  # launches keep the old one
        self.bytes += fresh.nbytes
        return _part(root, array, fresh)


def difference(
    stream: Stream, call: dict[str, Any], roots: list[Any], saved: list[Any], moved: list[Any], step: float
) -> list[Any]:
    """The central difference of one launch along ``moved``; its arrays are left as they were."""
    ends = []
    for sign in (1.0, -1.0):
        for (memory, base), tangent in zip(saved, moved):
            memory[...] = base
            if tangent is not None:
                memory[...] = base + (sign * step) * tangent
        run_again(stream, call)
        ends.append([memory.copy() if _follows(root) else None for root, (memory, _) in zip(roots, saved)])
    for memory, base in saved:
        memory[...] = base
    found: list[Any] = []
    for high, low in zip(*ends):
        if high is None:
            found.append(None)
            continue
        with np.errstate(all="ignore"):
            tangent = (high.astype(np.float64) - low.astype(np.float64)) / (2.0 * step)
        found.append(tangent if tangent.any() else None)
    return found


def run_again(stream: Stream, call: dict[str, Any]) -> None:
    """Runs a launch as it was called, off the tape and unseen."""
    stream.depth += 1
    try:
        warp.launch(**{**call, "record_tape": False})
    finally:
        stream.depth -= 1


def has_gradient(root: Any) -> bool:
    return bool(root.requires_grad) and root.grad is not None


def launch_roots(event: Event) -> list[Any]:
    """The arrays whose memory a launch was given, each once."""
    found: dict[int, Any] = {}
    for _, array in event.arrays:
        root = arrays.root(array)
        found.setdefault(id(root), root)
    return list(found.values())


def _tangents(root: Any) -> dict[str, Any]:
    known: dict[str, Any] | None = getattr(root, "_warplint_tangents", None)
    if known is None:
        known = root._warplint_tangents = {}
    return known


def _follows(root: Any) -> bool:
    """Whether an array's content is one block of floating-point numbers."""
    return bool(arrays.is_float(root) and root.is_contiguous and root.size)


def _part(root: Any, array: Any, tangent: Any) -> Any:
    """The elements of ``array``, a view of ``root``, within the tangent of ``root``."""
    if array is root:
        return tangent
    memory, base = arrays.memory(array), arrays.memory(root)
    size = base.dtype.itemsize
    offset = (int(array.ptr) - int(root.ptr)) // size * 8
    strides = tuple(s // size * 8 for s in memory.strides)
    return np.ndarray(memory.shape, np.float64, tangent, offset, strides)
