"""Kernels whose own adjoint is not the derivative of what they compute.

The *defect* of a launch along a direction is what its adjoint makes of the tangents of its arrays,
less what the incoming adjoint makes of the tangents it leaves: zero for a right adjoint. The
defects of all launches add up to the whole difference between autodiff and the derivative, so a
kernel is replaced by its measured derivative by taking its defects away.

What an overwrite causes is no fault of the kernel: a launch whose arrays changed since is looked at
with their values put back, too, and the smaller defect counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays, judge
from ..function_tests import test_function
from ..hooks import Event
from ..repairs import Repair, Repairs
from ..slots import wrong_slot
from ..tangents import Launched, Tangents, difference, has_gradient
from ..ties import at_tie
from .base import CounterfactualRun, Kind

SHARE = 0.02
"""Part of the difference that the defects of a kernel must make up to be a cause."""
FIRST_STEP = 1.0e-3
"""Step, relative to the parameter's scale, where the comparison itself has none."""
MENDED = 0.2
"""Part of a defect that a repair may leave: what is left of small ones is rounding."""
KNOWN: dict[tuple, tuple[list[dict[str, Any]], Any]] = {}
"""Repairs that were tried before this process was forked: building kernels takes seconds."""
COLUMNS = 512
"""Elements whose adjoint is not finite that are computed one by one, in one launch."""


def remember(causes: list[dict[str, Any]]) -> None:
    """What a child found out about kernels, for the children to come."""
    for cause in causes:
        if cause["key"][0] == Adjoints.NAME and cause["tried"]:
            KNOWN[cause["key"]] = cause["repairs"], cause["slot"]


class Adjoints(Kind):
    """Measures what the adjoint of each launch is off by, and takes that away from the result."""

    NAME = "adjoint"
    LATE = True

    def __init__(self, run: CounterfactualRun) -> None:
        super().__init__(run)
        self.tangents: Tangents | None = None
        self.pending: Launched | None = None
        self.records: dict[tuple[int, int], Launched] = {}
        self.backward: Any = None
        self.cursor = 0
        self.kernels: dict[tuple, dict[str, Any]] = {}
        self.repairs = Repairs(self.stream)
        checks = dict(run.measured.checks)
        self.gaps = {n: abs(c.ad - c.fd) for n, c in checks.items() if c.outcome == judge.DIFFERS}

    def start(self) -> None:
        measured = self.run.measured
        directions = {
            name: (measured.vectors[name], check.step or FIRST_STEP * measured.scale)
            for name, check in measured.checks
            if check.outcome in (judge.DIFFERS, judge.AGREES, judge.MEASURED)
        }
        self.tangents = Tangents(self.stream, directions)
        parameter = self.stream.births.live.get(measured.episode.serial)
        if parameter is not None:
            self.tangents.seed(parameter)

    # -- forward -------------------------------------------------------------------------

    def before(self, event: Event) -> None:
        if self.tangents is None:
            return
        if event.kind == "launch":
            self.pending = self.tangents.launch(event)
            self.position = len(event.tape.launches) if event.tape is not None else 0
        elif event.kind == "backward":
            self.backward = event.details["tape"]
            self.cursor = len(self.backward.launches)

    def after(self, event: Event) -> None:
        if self.tangents is None:
            return
        if event.kind == "launch":
            tried, self.pending = self.pending, None
            if tried is None:
                return
            self.tangents.done(tried)
            if event.recorded and len(event.tape.launches) > self.position:
                self.records[id(event.tape), self.position] = tried
        elif event.kind in ("copy", "assign", "zero", "fill"):
            self.tangents.moved(event)
        elif event.kind == "backward":
            self.backward = None
        elif event.kind == "tape-reset":
            tape = id(event.details["tape"])
            self.records = {key: value for key, value in self.records.items() if key[0] != tape}

    # -- backward ------------------------------------------------------------------------

    def around_adjoint(self, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        index = self.locate(call) if self.backward is not None else None
        if index is None:
            return run()
        launch = self.records.get((id(self.backward), index))
        if launch is None:
            return run()
        return self.measured(launch, index, call, run)

    def locate(self, call: dict[str, Any]) -> int | None:
        launches = self.backward.launches
        for index in range(self.cursor - 1, -1, -1):
            entry = launches[index]
            if not callable(entry) and entry[3] is call.get("inputs") and entry[4] is call.get("outputs"):
                self.cursor = index
                return index
        return None

    def measured(self, launch: Launched, index: int, call: dict[str, Any], run: Callable[[], Any]) -> Any:
        """Runs the adjoint of a launch and notes what it is off by."""
        graded = [r for r in launch.roots if has_gradient(r)]
        incoming = [arrays.memory(r.grad).copy() for r in graded]
        result = run()
        left = [arrays.memory(r.grad).copy() for r in graded]
        defects = self.defects(launch, graded, incoming, left)
        finite = _finite(left) or not _finite(incoming)
        contents = self.contents(index)
        if contents and not (finite and self.small(defects)):
            with _Restored(launch, contents, graded, incoming, left):
                run()
                again = [arrays.memory(r.grad).copy() for r in graded]
            other = self.defects(launch, graded, incoming, again)
            finite = finite or _finite(again)
            if finite and _size(other) < _size(defects):
                defects = other
        cause = self.note(launch, defects, finite)
        if cause is not None and not self.run.removed:
            self.try_repairs(
                cause, launch, call, contents, graded, incoming, left, defects if finite else None
            )
        if not finite and cause is not None and self.removes(cause["key"]):
            self.replace(launch, contents, graded, incoming, left)
        return result

    def defects(
        self, launch: Launched, graded: list[Any], incoming: list[Any], left: list[Any]
    ) -> dict[str, float]:
        assert self.tangents is not None
        places = {id(r): k for k, r in enumerate(launch.roots)}
        found = {}
        for name in self.tangents.directions:
            before, after = launch.before[name], launch.graded[name]
            total = 0.0
            with np.errstate(all="ignore"):
                for root, old, new in zip(graded, incoming, left):
                    place = places[id(root)]
                    if before[place] is not None:
                        total += float(np.sum(new.astype(np.float64) * before[place]))
                    if after[place] is not None:
                        total -= float(np.sum(old.astype(np.float64) * after[place]))
            found[name] = total
        return found

    def small(self, defects: dict[str, float]) -> bool:
        """Whether defects are no part worth speaking of of the difference to be explained."""
        return all(abs(defects.get(n, 0.0)) <= 1.0e-4 * gap for n, gap in self.gaps.items())

    def contents(self, index: int) -> list[Any]:
        """What the launch was given, if that is no longer there."""
        for kind in self.run.kinds:
            snapshots = getattr(kind, "snapshots", None)
            if snapshots is not None:
                record = snapshots.state(self.backward).records.get(index)
                kept = record.contents if record is not None else []
                changed = any(arrays.content(c.array) != c.data for _, c in kept)
                return [c for _, c in kept] if changed else []
        return []

    def note(self, launch: Launched, defects: dict[str, float], finite: bool) -> dict[str, Any] | None:
        details = launch.event.details
        key = (self.NAME, details["kernel_file"], details["kernel_line"], details["kernel"])
        found = self.kernels.get(key)
        if found is None:
            found = self.kernels[key] = {
                "key": key,
                "stack": launch.event.stack,
                "kernel": details["kernel"],
                "kernel_file": details["kernel_file"],
                "kernel_line": details["kernel_line"],
                "finite": True,
                "defects": dict.fromkeys(defects, 0.0),
                "count": 0,
                "repairs": [],
                "natives": self.natives(details["object"]),
                "tried": False,
                "slot": None,
            }
        found["count"] += 1
        found["finite"] = found["finite"] and finite
        if finite:
            for name, value in defects.items():
                found["defects"][name] += value
        return found

    def natives(self, kernel: Any) -> list[tuple[str, str, int]]:
        """Functions in native code without an adjoint that a kernel calls: name, file and line."""
        sites, found, open_functions = self.stream.sites, {}, [kernel]
        while open_functions:
            for function in open_functions.pop().adj.get_references()[2]:
                if function in found or sites.name(function.adj.filename) is None:
                    continue
                found[function] = function.native_snippet is not None and function.adj_native_snippet is None
                open_functions.append(function)
        return [
            (f.key, sites.name(f.adj.filename) or "", f.adj.fun_lineno)
            for f, without in found.items()
            if without
        ]

    def share(self, defects: dict[str, float]) -> float:
        """The largest part of a difference that defects make up."""
        shares = [abs(defects.get(n, 0.0)) / gap for n, gap in self.gaps.items() if gap and np.isfinite(gap)]
        return max(shares, default=0.0)

    # -- what mends it -------------------------------------------------------------------

    def try_repairs(
        self,
        cause: dict[str, Any],
        launch: Launched,
        call: dict[str, Any],
        contents: list[Any],
        graded: list[Any],
        incoming: list[Any],
        left: list[Any],
        defects: dict[str, float] | None,
    ) -> None:
        """Which change of the kernel makes the test of this launch pass (or its adjoint finite)."""
        if cause["key"] in KNOWN:
            (cause["repairs"], cause["slot"]), cause["tried"] = KNOWN[cause["key"]], True
        if cause["tried"] or (defects is not None and not self.share(defects) > SHARE):
            return
        cause["tried"] = True
        cause["slot"] = self.slot(launch, contents, graded, incoming, left)
        mending = None

        def mends(repair: Repair) -> bool:
            with _Restored(launch, [], graded, incoming, left):
                if not self.repairs.run_adjoint(repair, call):
                    return False
                again = [arrays.memory(r.grad).copy() for r in graded]
            if defects is None:
                return _finite(again)
            return _size(self.defects(launch, graded, incoming, again)) < MENDED * _size(defects)

        tried = launch.event.details["call"]
        for repair in self.repairs.of(tried["kernel"], tried, finite=defects is not None):
            if mends(repair):
                cause["repairs"].append(self.repairs.narrowed(tried["kernel"], repair, mends).told())
                mending = repair.function
                break
        if mending is not None:  # the function has its custom adjoint back by now
            cause["repairs"][0]["surrogate"] = self.is_surrogate(mending)
        if not cause["repairs"] and defects is not None and self.is_tie(launch):
            cause["repairs"].append({"what": "tie", "name": "", "place": ()})
        KNOWN[cause["key"]] = cause["repairs"], cause["slot"]

    def slot(
        self,
        launch: Launched,
        contents: list[Any],
        graded: list[Any],
        incoming: list[Any],
        left: list[Any],
    ) -> dict[str, Any] | None:
        """The element whose adjoint this launch gets wrong (most)."""
        call = launch.event.details["call"]

        def derivative(root: Any, place: tuple[int, ...]) -> float:
            base = arrays.memory(root)
            scale = float(np.sqrt(np.mean(np.square(base.astype(np.float64))))) or 1.0
            return self.column(call, launch, saved, root, place, scale, graded, incoming)

        try:
            with _Restored(launch, contents, graded, left, left, again=True):
                saved = [(arrays.memory(r), arrays.memory(r).copy()) for r in launch.roots]
                names = {id(arrays.root(a)): name for name, a in reversed(launch.event.arrays)}
                return wrong_slot(names, graded, incoming, left, derivative)
        except Exception:
            return None

    def is_surrogate(self, function: Any) -> bool:
        """Whether a custom adjoint stands in for the derivative of a piecewise constant function."""
        try:
            row = test_function(self.stream, function)
        except Exception:
            return False
        return row is not None and bool(row["surrogate"])

    def is_tie(self, launch: Launched) -> bool:
        """Whether the launch selects among equals, and is right where they are not equal."""
        try:
            with _Restored(launch, [], [], [], [], again=True):
                return at_tie(self.stream, launch.event.details["call"], launch.roots)
        except Exception:
            return False

    def replace(
        self, launch: Launched, contents: list[Any], graded: list[Any], incoming: list[Any], left: list[Any]
    ) -> None:
        """Puts differences of the launch where its adjoint is not finite, element by element."""
        call = launch.event.details["call"]
        new = [values.copy() for values in left]
        with _Restored(launch, contents, graded, left, left, again=True):
            saved = [(arrays.memory(r), arrays.memory(r).copy()) for r in launch.roots]
            for root, old, values in zip(graded, incoming, new):
                if values.dtype.kind != "f":
                    continue
                bad = np.argwhere(~np.isfinite(values) & np.isfinite(old))
                base = arrays.memory(root)
                scale = float(np.sqrt(np.mean(np.square(base.astype(np.float64))))) or 1.0
                for place in map(tuple, bad[:COLUMNS]):
                    values[place] = self.column(call, launch, saved, root, place, scale, graded, incoming)
        for root, values in zip(graded, new):
            arrays.memory(root.grad)[...] = values

    def column(
        self,
        call: dict[str, Any],
        launch: Launched,
        saved: list[Any],
        root: Any,
        place: tuple,
        scale: float,
        graded: list[Any],
        incoming: list[Any],
    ) -> float:
        """The derivative of what follows with respect to one element, by this launch alone."""
        step = FIRST_STEP * max(scale, abs(float(arrays.memory(root)[place])))
        unit = np.zeros(arrays.memory(root).shape)
        unit[place] = 1.0
        moved = [unit if r is root else None for r in launch.roots]
        after = difference(self.stream, call, launch.roots, saved, moved, step)
        total = 0.0
        for other, old in zip(graded, incoming):
            tangent = after[next(k for k, r in enumerate(launch.roots) if r is other)]
            if tangent is not None:
                total += float(np.sum(old.astype(np.float64) * tangent))
        return total if np.isfinite(total) else 0.0

    # -- the outcome ---------------------------------------------------------------------

    def found(self) -> list[dict[str, Any]]:
        return [
            dict(cause)
            for cause in self.kernels.values()
            if not cause["finite"] or self.share(cause["defects"]) > SHARE
        ]

    def corrections(self) -> dict[str, float]:
        total: dict[str, float] = {}
        for key, cause in self.kernels.items():
            if self.removes(key):
                for name, value in cause["defects"].items():
                    total[name] = total.get(name, 0.0) + value
        return total


class _Restored:
    """Arrays as a launch was given them and adjoints as they came in, for the time of a block.

    ``again``: the launch is to be run once more, so its counters are put back, too.
    """

    def __init__(
        self,
        launch: Launched,
        contents: list[Any],
        graded: list[Any],
        incoming: list[Any],
        left: list[Any],
        *,
        again: bool = False,
    ) -> None:
        self.launch, self.contents = launch, contents
        self.integers = launch.integers if again else []
        self.graded, self.incoming, self.left = graded, incoming, left

    def __enter__(self) -> None:
        self.saved = [(arrays.memory(r), arrays.memory(r).copy()) for r in self.launch.roots]
        for content in self.contents:
            arrays.put(content.array, content.data)
        for memory, values in self.integers:
            memory[...] = values
        for root, values in zip(self.graded, self.incoming):
            arrays.memory(root.grad)[...] = values

    def __exit__(self, *error: Any) -> None:
        for memory, values in self.saved:
            memory[...] = values
        for root, values in zip(self.graded, self.left):
            arrays.memory(root.grad)[...] = values


def _finite(values: list[Any]) -> bool:
    return all(_is_finite(v) for v in values)


def _is_finite(values: Any) -> bool:
    """Whether all numbers are finite, those in elements of structs as well."""
    if values.dtype.names:
        return all(_is_finite(values[name]) for name in values.dtype.names)
    return values.dtype.kind != "f" or bool(np.all(np.isfinite(values)))


def _size(defects: dict[str, float]) -> float:
    total = sum(abs(v) for v in defects.values())
    return total if np.isfinite(total) else float("inf")
