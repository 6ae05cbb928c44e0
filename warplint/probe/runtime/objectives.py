"""What a backward call is worth: the loss, or the seeded inner product, that it differentiates."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arrays
from .hooks import Event
from .kernels import may_read

UNSEEDED = -1
"""Stands among the seeds for the scalar that nothing was seeded for."""


def objective_of(event: Event, baseline: dict[int, Any] | None, chain: set[int]) -> float | None:
    """What a backward call descends on, at this moment; None if the event is no backward.

    The loss where one is given; otherwise the inner product of the seeded arrays with the
    seeds of the unperturbed run (``baseline``), so that the seed itself is held fixed.
    """
    if event.kind == "backward":
        loss = event.details.get("loss")
        if arrays.is_array(loss):
            return float(np.sum(arrays.recorded_values(loss)))
        seeds = baseline if baseline is not None else seeds_of(event, chain, frozenset())
        seeded = seedable(event)
        if UNSEEDED in seeds:
            scalar = unseeded_scalar(event)
            return float(np.sum(arrays.values(scalar))) if scalar is not None else 0.0
        return float(sum(np.sum(arrays.values(seeded[i]) * seed) for i, seed in seeds.items() if i in seeded))
    if event.kind == "adjoint":
        pairs = manual_seeds(event, chain)
        if not pairs:
            return None
        seeds = baseline if baseline is not None else seeds_of(event, chain, frozenset())
        return float(
            sum(np.sum(arrays.values(value) * seeds[i]) for i, (value, _) in enumerate(pairs) if i in seeds)
        )
    return None


def unseeded_scalar(event: Event) -> Any:
    """The number that a tape ends with, if its backward pass is given nothing to begin with."""
    if event.details.get("loss") is not None or event.details.get("grads"):
        return None
    launches = [launch for launch in event.details["tape"].launches if not callable(launch)]
    given = [a for launch in launches for _, a in arrays.walk([*launch[3], *launch[4]])]
    if any(a.grad is not None and a.grad.ptr and arrays.memory(a.grad).any() for a in given):
        return None
    last = arrays.walk([*launches[-1][3], *launches[-1][4]]) if launches else ()
    scalars = [a for _, a in last if a.size == 1 and a.grad is not None and arrays.is_float(a)]
    return scalars[-1] if scalars and arrays.values(scalars[-1]).size == 1 else None


def recording_of(event: Event) -> tuple | None:
    """Names what a backward call with a loss goes back over; None for other events.

    The same loss on the same recording is one objective, however often backward is called on it.
    """
    loss = event.details.get("loss")
    if event.kind != "backward" or not arrays.is_array(loss):
        return None
    tape = event.details["tape"]
    return (getattr(tape, "_warplint_recording", id(tape)), len(tape.launches), id(arrays.root(loss)))


def row_of(event: Event, seeds: dict[int, Any]) -> tuple[tuple, int, int] | None:
    """Names the row of a Jacobian that a backward call computes: one output element seeded, no loss."""
    if event.kind != "backward" or event.details.get("loss") is not None or len(seeds) != 1:
        return None
    index, seed = next(iter(seeds.items()))
    places = np.flatnonzero(seed) if index != UNSEEDED else np.zeros(0, dtype=int)
    tape = event.details["tape"]
    recording = (getattr(tape, "_warplint_recording", id(tape)), len(tape.launches))
    return (recording, index, int(places[0])) if len(places) == 1 else None


class Terms:
    """What each backward call of an episode adds to the objective."""

    def __init__(self) -> None:
        self.recordings: set[tuple] = set()
        self.left: dict[int, tuple[Any, int, float]] = {}
        """Losses gone back over, by identity: the array, its resets and its value then."""

    def of(self, event: Event, value: float) -> float:
        """``value``, without what an earlier call of the episode has counted already.

        That is all of it for a second pass over the same recording, and what a loss array
        held before where the recording only adds to it.
        """
        recording = recording_of(event)
        if recording is None:
            return value
        if recording in self.recordings:
            return 0.0
        self.recordings.add(recording)
        base = arrays.root(event.details["loss"])
        resets = arrays.resets(base)
        known, then, before = self.left.get(id(base), (None, 0, 0.0))
        self.left[id(base)] = (base, resets, value)
        counted = known is base and then == resets and _adds_to(event.details["tape"], base)
        return value - before if counted else value

    def note_launch(self, event: Event) -> None:
        """A launch off the tape may have reset a loss."""
        if self.left and not event.recorded:
            for _, array in event.arrays:
                self.left.pop(id(arrays.root(array)), None)


def _adds_to(tape: Any, base: Any) -> bool:
    """Whether a tape's first launch on an array goes on from what the array held."""
    for launch in tape.launches:
        if callable(launch):
            continue
        for label, array in arrays.arguments(launch[0], launch[3], launch[4]):
            if arrays.root(array) is base:
                return may_read(launch[0], label)
    return False


def seeds_of(event: Event, chain: set[int], adjoints: set[int] | frozenset[int]) -> dict[int, Any]:
    """The seeds of a backward call, by position among the arrays that may be seeded.

    A seed whose content is in ``adjoints`` was read from a gradient that an earlier backward
    call of the episode made (hand-written checkpointing), or is that gradient itself: it carries
    the objective on and is no term of its own.
    """
    if event.kind == "adjoint":
        return {i: arrays.values(seed) for i, (_, seed) in enumerate(manual_seeds(event, chain))}
    if event.details.get("loss") is not None:
        return {}
    grads = event.details.get("grads")
    if grads:
        found = {}
        for i, g in enumerate(grads.values()):
            if arrays.is_array(g):
                given = arrays.used_up(g)
                if given is not None or not (hash(arrays.content(g)) in adjoints or is_adjoint(g)):
                    found[i] = arrays.values(g) if given is None else given
        return found
    seeds = {}
    for i, array in seedable(event).items():
        gradient = array.grad
        given = arrays.used_up(gradient) if gradient is not None and gradient.ptr else None
        if given is not None:
            seeds[i] = given
        elif gradient is not None and gradient.ptr and arrays.given_by_user(gradient):
            value = arrays.values(gradient)
            if np.any(value) and hash(arrays.content(gradient)) not in adjoints:
                seeds[i] = value
    return seeds


def is_adjoint(seed: Any) -> bool:
    """Whether a seed is the very gradient that a backward pass left in another array."""
    return arrays.is_gradient(seed) and not arrays.given_by_user(arrays.root(seed))


def seedable(event: Event) -> dict[int, Any]:
    grads = event.details.get("grads")
    if grads:
        return dict(enumerate(grads.keys()))
    found: dict[int, Any] = {}
    seen: set[int] = set()
    tape = event.details.get("tape")
    for launch in tape.launches if tape is not None else ():
        if callable(launch):
            continue
        for _, array in arrays.walk([*launch[3], *launch[4]]):
            if array.grad is not None and id(array) not in seen:
                seen.add(id(array))
                found[len(found)] = array
    return found


def resolution_of(event: Event) -> float:
    """Relative spacing of the numbers the objective is made of."""
    loss = event.details.get("loss")
    candidates = (
        [loss] if arrays.is_array(loss) else [a for _, a in event.arrays] or list(seedable(event).values())
    )
    kinds = [arrays.memory(a).dtype for a in candidates if arrays.is_array(a) and arrays.is_float(a)]
    return max((float(np.finfo(k).eps) for k in kinds), default=float(np.finfo(np.float32).eps))


def adopt_manual_gradients(event: Event) -> None:
    """Pairs inputs with their adjoint arrays in a launch with ``adjoint=True``."""
    inputs = list(event.details["inputs"])
    for value, adjoint in zip(inputs, list(event.details["adj_inputs"])):
        if arrays.is_array(value) and arrays.is_array(adjoint) and adjoint.ptr:
            gradient = arrays.root(adjoint)
            if getattr(gradient, "_warplint_owner", None) is None:
                arrays.adopt_gradient(arrays.root(value), gradient)


def manual_seeds(event: Event, chain: set[int]) -> list[tuple[Any, Any]]:
    """(output, seed) pairs of a manual adjoint launch that no earlier launch of the chain made."""
    outputs = list(event.details["outputs"])
    found = []
    for value, seed in zip(outputs, list(event.details["adj_outputs"])):
        if arrays.is_array(value) and arrays.is_array(seed) and id(arrays.root(seed)) not in chain:
            found.append((value, seed))
    return found


def note_chain(event: Event, chain: set[int]) -> None:
    for adjoint in event.details["adj_inputs"]:
        if arrays.is_array(adjoint):
            chain.add(id(arrays.root(adjoint)))
