"""The dot-product test of single launches: is each adjoint the derivative of its own launch?

For random ``u`` and ``v``, ``<u, J v>`` by differences of the launch must be ``<adjoint(u), v>``. The
test needs no objective: it decides where finite differences cannot see the objective, and about
kernels whose fault does not reach this gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp
from warp._src import context

from . import arrays
from .forks import Reporter
from .hooks import Event, Observer, Stream
from .repairs import Repair, Repairs
from .structure import Episode
from .tangents import difference, has_gradient, launch_roots, run_again

STEP = 4.0e-3
"""Displacement relative to the scale of each array; tried again at a quarter of it."""
WRONG = 0.05
"""Size of a mismatch, relative to the numbers that should be equal."""
TRIALS = 3
LAUNCHES = 4
"""Launches of a kernel that are tested, each at its own arguments."""
LARGEST = 1 << 24
"""Bytes of arguments above which a launch is left alone."""


class LaunchTests(Observer):
    """Tests the first launches of every kernel in an episode, then reports and leaves."""

    def __init__(self, stream: Stream, reporter: Reporter, episode: Episode) -> None:
        self.stream = stream
        self.reporter = reporter
        self.episode = episode
        self.started = False
        self.kernels: dict[tuple, dict[str, Any]] = {}
        self.repairs = Repairs(stream)

    def before(self, event: Event) -> None:
        if event.name == self.episode.start:
            self.started = True
        if not self.started:
            return
        if event.kind == "launch" and event.recorded and event.details.get("call") is not None:
            self.look(event)
        elif event.kind == "backward":
            self.leave()

    def finished(self, error: BaseException | None) -> None:
        self.leave()

    def leave(self) -> None:
        self.reporter.leave([row for row in self.kernels.values() if row["tested"] or row["repairs"]])

    def is_tie(self, event: Event) -> bool:
        """Whether a launch cannot be tested because it selects among equals."""
        from .ties import at_tie  # it needs these tests itself

        return at_tie(self.stream, event.details["call"], launch_roots(event))

    def look(self, event: Event) -> None:
        details = event.details
        key = (details["kernel_file"], details["kernel_line"], details["kernel"])
        row = self.kernels.setdefault(
            key,
            {
                "key": ("adjoint", *key),
                "kernel": details["kernel"],
                "kernel_file": details["kernel_file"],
                "kernel_line": details["kernel_line"],
                "stack": event.stack,
                "tested": 0,
                "wrong": 0,
                "error": 0.0,
                "finite": True,
                "natives": [],
                "repairs": [],
            },
        )
        if row["tested"] >= LAUNCHES:
            return
        try:
            error = test_launch(self.stream, event)
        except Exception:
            return
        if error is None and not row["repairs"] and self.is_tie(event):
            row["repairs"].append({"what": "tie", "name": "", "place": ()})
        if error is not None:
            row["tested"] += 1
            row["wrong"] += error > WRONG
            if error > row["error"]:
                row["error"], row["stack"] = error, event.stack
            if error > WRONG and row["wrong"] == 1:
                self.try_repairs(row, event)

    def try_repairs(self, row: dict[str, Any], event: Event) -> None:
        """Which change of the kernel makes its test pass."""
        call = event.details["call"]

        def mends(repair: Repair) -> bool:
            try:
                with repair.in_force():
                    error = test_launch(self.stream, event, repair.kernel)
            except Exception:
                return False
            return error is not None and error <= WRONG

        for repair in self.repairs.of(call["kernel"], call):
            if mends(repair):
                row["repairs"].append(self.repairs.narrowed(call["kernel"], repair, mends).told())
                return
        if self.is_tie(event):
            row["wrong"] = 0
            row["repairs"].append({"what": "tie", "name": "", "place": ()})


def test_launch(stream: Stream, event: Event, kernel: Any = None) -> float | None:
    """The mismatch of a launch that all trials show; None if the launch cannot be tested.

    ``kernel`` lends its adjoint, to see whether a changed kernel passes the test.
    """
    return test_call(stream, event.details["call"], launch_roots(event), kernel)


def test_call(stream: Stream, call: dict[str, Any], roots: list[Any], kernel: Any = None) -> float | None:
    """The same for a launch that is not part of a program."""
    found = trial_errors(stream, call, roots, kernel)
    trusted = [f for f in found if f is not None]
    return min(trusted) if len(trusted) == TRIALS else None


def trial_errors(
    stream: Stream,
    call: dict[str, Any],
    roots: list[Any],
    kernel: Any = None,
    trials: int = TRIALS,
    step: float = STEP,
    still: bool = False,
) -> list[float | None]:
    """The mismatch along each of some random directions; None for one that tells nothing.

    With ``still``, arrays that the launch changes are not moved themselves.
    """
    backward = call if kernel is None else {**call, "kernel": kernel}
    graded = [r for r in roots if has_gradient(r) and arrays.is_float(r) and r.is_contiguous and r.size]
    if not graded or sum(arrays.memory(r).nbytes for r in roots) > LARGEST:
        return []
    rng = np.random.Generator(np.random.PCG64(7))
    saved = [(arrays.memory(r), arrays.memory(r).copy()) for r in roots]
    held = _changed(stream, call, saved) if still else []
    adjoints = [(arrays.memory(r.grad), arrays.memory(r.grad).copy()) for r in graded]
    try:
        return [_trial(stream, call, backward, roots, graded, saved, rng, step, held) for _ in range(trials)]
    finally:
        for memory, values in (*saved, *adjoints):
            memory[...] = values


def overflows(stream: Stream, call: dict[str, Any], roots: list[Any]) -> bool:
    """Whether a launch whose arguments and results are finite has an adjoint that is not."""
    graded = [r for r in roots if has_gradient(r) and arrays.is_float(r) and r.is_contiguous and r.size]
    saved = [(arrays.memory(r), arrays.memory(r).copy()) for r in roots]
    floats = [k for k, (memory, _) in enumerate(saved) if memory.dtype.kind == "f"]
    results = _results(stream, call, saved)
    if not all(np.all(np.isfinite(results[k])) for k in floats):
        return False
    weights = [np.ones(arrays.memory(r).shape) for r in graded]
    try:
        left = _adjoint(stream, call, graded, saved, weights, "before")
    finally:
        for memory, values in saved:
            memory[...] = values
    return not all(np.all(np.isfinite(n)) for n in left)


def _trial(
    stream: Stream,
    call: dict[str, Any],
    backward: dict[str, Any],
    roots: list[Any],
    graded: list[Any],
    saved: list[Any],
    rng: Any,
    step: float,
    held: list[bool],
) -> float | None:
    moved: list[Any] = []
    for k, (root, (memory, base)) in enumerate(zip(roots, saved)):
        if any(root is g for g in graded) and held and held[k]:
            moved.append(np.zeros(memory.shape))
        elif any(root is g for g in graded):
            scale = float(np.sqrt(np.mean(np.square(base.astype(np.float64))))) or 1.0
            moved.append(scale * rng.standard_normal(memory.shape))
        else:
            moved.append(None)
    coarse = difference(stream, call, roots, saved, moved, step)
    fine = difference(stream, call, roots, saved, moved, step / 4.0)
    places = [next(k for k, r in enumerate(roots) if r is g) for g in graded]
    weights = []
    for k in places:
        weight = rng.standard_normal(moved[k].shape)
        if fine[k] is not None:  # what the launch leaves alone would only hide the rest
            weight[np.isclose(fine[k], moved[k], rtol=1e-2, atol=0.0)] = 0.0
        weights.append(weight)
    results = _results(stream, call, saved)
    bent = _bend(stream, call, saved, moved, results)
    noise = [w * _spacing(results[k]) / (0.25 * step) for w, k in zip(weights, places)]
    best: float | None = None
    for state in ("before", "after"):
        left = _adjoint(stream, backward, graded, saved, weights, state)
        pulled = [n * moved[k] for n, k in zip(left, places)]
        pushed = [w * fine[k] for w, k in zip(weights, places) if fine[k] is not None]
        rough = [w * coarse[k] for w, k in zip(weights, places) if coarse[k] is not None]
        gap = abs(_sum(pulled) - _sum(pushed))
        if not np.isfinite(gap):
            return None  # whether that matters depends on the data: the measured gradient tells
        size = _size(pushed, pulled) or 1.0
        corner = [w * bent[k] for w, k in zip(weights, places) if bent[k] is not None]
        doubt = max(abs(_sum(pushed) - _sum(rough)), 4.0 * _size(noise, []), abs(_sum(corner)))
        if gap > WRONG * size and doubt > 0.2 * gap:
            return None  # a kink, or numbers too large for their changes to be seen
        error = gap / size
        best = error if best is None else min(best, error)
    return best


def _adjoint(
    stream: Stream, call: dict[str, Any], graded: list[Any], saved: list[Any], weights: list[Any], state: str
) -> list[Any]:
    """What the launch's adjoint makes of ``weights``, with its arrays as before or after it."""
    for memory, values in saved:
        memory[...] = values
    tape = warp.Tape()
    outer, context.runtime.tape = context.runtime.tape, tape
    stream.depth += 1
    inside, stream.in_backward = stream.in_backward, False
    try:
        warp.launch(**{**call, "record_tape": True})
        context.runtime.tape = None
        if state == "before":
            for memory, values in saved:
                memory[...] = values
        for root, weight in zip(graded, weights):
            arrays.memory(root.grad)[...] = weight
        tape.backward()
    finally:
        context.runtime.tape = outer
        stream.depth -= 1
        stream.in_backward = inside
    return [arrays.memory(r.grad).astype(np.float64) for r in graded]


def _results(stream: Stream, call: dict[str, Any], saved: list[Any]) -> list[Any]:
    """What the launch makes of its arguments as they are."""
    run_again(stream, call)
    found = [memory.copy() for memory, _ in saved]
    for memory, values in saved:
        memory[...] = values
    return found


def _bend(
    stream: Stream, call: dict[str, Any], saved: list[Any], moved: list[Any], results: list[Any]
) -> Any:
    """By how much the slopes of both sides differ from their mean: little, unless there is a corner."""
    ends = []
    for sign in (1.0, -1.0):
        for (memory, base), tangent in zip(saved, moved):
            memory[...] = base if tangent is None else base + (sign * 0.25 * STEP) * tangent
        ends.append(_results(stream, call, saved))
    return [
        (high.astype(np.float64) + low - 2.0 * base) / (0.5 * STEP) if base.dtype.kind == "f" else None
        for high, low, base in zip(*ends, results)
    ]


def _changed(stream: Stream, call: dict[str, Any], saved: list[Any]) -> list[bool]:
    """Which arrays a launch changes."""
    results = _results(stream, call, saved)
    return [not np.array_equal(r, values, equal_nan=True) for r, (_, values) in zip(results, saved)]


def _spacing(values: Any) -> Any:
    """The distance between neighbouring numbers of this size."""
    if values.dtype.kind != "f":
        return np.zeros(values.shape)
    return np.abs(values.astype(np.float64)) * float(np.finfo(values.dtype).eps)


def _sum(terms: list[Any]) -> float:
    return float(sum(np.sum(t) for t in terms))


def _size(pushed: list[Any], pulled: list[Any]) -> float:
    """How large the two sums are if their terms have random signs."""
    return float(np.sqrt(sum(np.sum(np.square(t)) for t in (*pushed, *pulled))))
